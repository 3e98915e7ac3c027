#!/usr/bin/env perl
# The mirror, by hand in Perl: core modules only.
use strict;
use warnings;
use IO::Socket::UNIX;
use JSON::PP;

my $json = JSON::PP->new->utf8;
my $line = IO::Socket::UNIX->new(Peer => $ENV{OPERANT_SERVICE_SOCKET}) or die "no socket: $!";
$line->autoflush(1);
my $last = 0;

sub tell_it { print {$line} $json->encode({jsonrpc => "2.0", @_}), "\n" }

sub call {
    my ($within, $method, %params) = @_;
    my $mine = ++$last;
    tell_it(id => $mine, method => $method, params => \%params, within => $within);
    while (my $text = <$line>) {
        my $message = $json->decode($text);
        if (exists $message->{method}) { answer($message); next }
        next if $message->{id} != $mine;
        die "$message->{error}{message}\n" if $message->{error};
        return $message->{result};
    }
    exit 0;
}

sub hook {
    my ($id, $params) = @_;
    my $words = $params->{output}{arguments}{command} // "";
    return {verdict => "reject", reason => "no"} if $words =~ /forbidden/;
    return {verdict => "ask", question => "sure?"} if $words =~ /ask me/;
    return {output => {arguments => {command => $words}}} if $words =~ s/please //;
    if ($words =~ /count/) {
        my $number = call($id, "service.state.get", key => "n") // 0;
        call($id, "service.state.set", key => "n", value => "" . ($number + 1));
    }
    return undef;
}

my %handlers = (
    hook    => \&hook,
    command => sub { {output => "hello $_[1]{arguments}[0]\n"} },
    tool    => sub {
        tell_it(method => "progress", params => {id => $_[0], text => "half"});
        return {text => $_[1]{arguments}{text}};
    },
);

sub answer {
    my ($message) = @_;
    exit 0 if $message->{method} eq "shutdown";
    return unless defined $message->{id};
    my $handle = $handlers{$message->{method}} // sub { undef };
    my $result = eval { $handle->($message->{id}, $message->{params}) };
    return tell_it(id => $message->{id}, error => {code => -32000, message => $@}) if $@;
    tell_it(id => $message->{id}, result => $result);
}

call(
    undef, "register",
    protocol => "svc/1",
    token    => $ENV{OPERANT_SERVICE_TOKEN},
    hooks    => [{point => "tool.before"}],
    tools    => [{name => "echo", description => "Say it back.",
                  schema => {type => "object", properties => {text => {type => "string"}}}}],
    commands => [{name => "greet", description => "Greet somebody."}],
    events   => ["turn.ended"],
);
while (my $text = <$line>) { answer($json->decode($text)) }
