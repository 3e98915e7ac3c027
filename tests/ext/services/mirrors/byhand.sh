#!/usr/bin/env bash
# The mirror, by hand in Bash with jq and socat.
set -u
coproc LINE { exec socat - "UNIX-CONNECT:$OPERANT_SERVICE_SOCKET"; }
exec {out}>&"${LINE[1]}" {in}<&"${LINE[0]}"
last=0

call() { # call WITHIN METHOD PARAMS: the result is in $result; requests that come meanwhile are answered first
    local mine=$((++last)) text
    printf '{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s,"within":%s}\n' "$mine" "$2" "$3" "$1" >&"$out"
    while read -r text <&"$in"; do
        if [[ $(jq 'has("method")' <<<"$text") == true ]]; then answer "$text"; continue; fi
        [[ $(jq .id <<<"$text") == "$mine" ]] || continue
        result=$(jq -c .result <<<"$text")
        [[ $(jq 'has("error")' <<<"$text") == false ]]
        return
    done
    exit 0
}

hook() { # hook ID PARAMS
    local words number
    words=$(jq -r '.output.arguments.command // ""' <<<"$2")
    case $words in
        *forbidden*) reply='{"verdict":"reject","reason":"no"}' ;;
        *"ask me"*) reply='{"verdict":"ask","question":"sure?"}' ;;
        *"please "*) reply=$(jq -cn --arg words "${words/please /}" '{output: {arguments: {command: $words}}}') ;;
        *count*)
            call "$1" service.state.get '{"key":"n"}' || return 1
            number=$(jq -r '. // 0' <<<"$result")
            call "$1" service.state.set "{\"key\":\"n\",\"value\":\"$((number + 1))\"}" || return 1
            ;;
    esac
}

answer() { # answer MESSAGE
    local id method params reply=null
    id=$(jq -c .id <<<"$1") method=$(jq -r .method <<<"$1") params=$(jq -c '.params // {}' <<<"$1")
    [[ $method != shutdown ]] || exit 0
    [[ $id != null ]] || return 0
    case $method in
        hook) hook "$id" "$params" || { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"failed"}}\n' "$id" >&"$out"; return; } ;;
        tool)
            printf '{"jsonrpc":"2.0","method":"progress","params":{"id":%s,"text":"half"}}\n' "$id" >&"$out"
            reply=$(jq -c '{text: .arguments.text}' <<<"$params")
            ;;
        command) reply=$(jq -c '{output: "hello \(.arguments[0])\n"}' <<<"$params") ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$reply" >&"$out"
}

call null register "$(jq -cn --arg token "$OPERANT_SERVICE_TOKEN" '{protocol: "svc/1", token: $token,
    hooks: [{point: "tool.before"}], events: ["turn.ended"],
    tools: [{name: "echo", description: "Say it back.", schema: {type: "object", properties: {text: {type: "string"}}}}],
    commands: [{name: "greet", description: "Greet somebody."}]}')"
while read -r text <&"$in"; do answer "$text"; done
