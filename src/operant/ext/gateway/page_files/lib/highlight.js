// @ts-check
// Colours for code: comments, strings, numbers, keywords and names that are called, for the languages people meet most.

/** @param {string} words */
const set = (words) => new Set(words.split(" "));

const C_LIKE = "if else for while do switch case default break continue return new delete throw try catch finally typeof instanceof in of void this super class extends const let var function async await yield import export from static get set null true false undefined";

/** @type {Record<string, {words: Set<string>, comment: RegExp, strings: RegExp}>} */
const LANGUAGES = {};

/** @param {string} names @param {string} words @param {RegExp} comment @param {RegExp} strings */
function define(names, words, comment, strings = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/y) {
  for (const name of names.split(" ")) LANGUAGES[name] = { words: set(words), comment, strings };
}

const SLASHES = /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/y;
const HASH = /#[^\n]*/y;
const TEMPLATES = /`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/y;

define("js javascript jsx mjs ts typescript tsx", `${C_LIKE} interface type enum implements private public protected readonly declare namespace as is keyof never unknown any string number boolean`, SLASHES, TEMPLATES);
define("java kotlin scala cs csharp swift dart php", `${C_LIKE} public private protected final abstract interface enum package fun val when object override sealed guard func struct using namespace int long double float boolean string bool string echo use`, SLASHES);
define("c cpp cc h hpp", `${C_LIKE} int long short char float double unsigned signed struct union enum typedef sizeof static extern inline template typename namespace using public private protected virtual override constexpr auto bool nullptr include define`, SLASHES);
define("go", "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false string int int64 error bool byte", SLASHES, TEMPLATES);
define("rust rs", "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait type unsafe use where while true false None Some Ok Err", SLASHES, /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\\n])'/y);
define("python py", "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield None True False self", HASH, /[rbfu]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')/iy);
define("ruby rb perl pl", "begin break case class def do else elsif end ensure for if in module my next nil not or our redo require rescue retry return self sub super then true false undef unless until use when while yield", HASH);
define("sh bash shell zsh console", "if then else elif fi for in do done while until case esac function return local export set unset exit echo cd source trap shift read", HASH, /"(?:\\.|[^"\\])*"|'[^']*'/y);
define("yaml yml toml ini conf dockerfile makefile", "true false null yes no on off from run copy cmd entrypoint env arg expose volume user workdir", HASH);
define("sql", "select from where insert into update delete set values create table index view drop alter add column primary key foreign references join left right inner outer on group by order having limit offset union all distinct as and or not null is in like between case when then else end begin commit rollback with", /--[^\n]*|\/\*[^]*?(?:\*\/|$)/y);
define("json jsonc", "true false null", SLASHES);
define("css scss less", "important media import keyframes supports from to", /\/\*[^]*?(?:\*\/|$)/y);
define("lua", "and break do else elseif end false for function if in local nil not or repeat return then true until while", /--[^\n]*/y);

const WORD = /[A-Za-z_$][\w$-]*/y;
const NUMBER = /\b(?:0[xob][\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b/iy;
const TAG = /<\/?[\w:-]+|\/?>/y;
const MARKUP = set("html xml svg vue xhtml");

/** Cut code into pieces with a class (empty: none). @param {string} code @param {string} name @returns {[string, string][]} */
export function highlight(code, name) {
  const language = name.toLowerCase();
  if (code.length > 100_000) return [["", code]];
  if (language === "diff" || language === "patch") return lines(code);
  const rules = LANGUAGES[language];
  if (!rules && !MARKUP.has(language)) return [["", code]];
  return rules ? pieces(code, rules, language === "sql") : pieces(code, null, false);
}

/** @param {string} code @param {any} rules @param {boolean} fold */
function pieces(code, rules, fold) {
  /** @type {[string, string][]} */
  const made = [];
  let plain = "";
  /** @param {string} kind @param {string} text */
  const push = (kind, text) => {
    if (plain) made.push(["", plain]);
    plain = "";
    made.push([kind, text]);
  };
  /** @param {RegExp} pattern @param {number} at */
  const at = (pattern, at) => {
    pattern.lastIndex = at;
    return pattern.exec(code)?.[0] || "";
  };
  let place = 0;
  while (place < code.length) {
    let text;
    if (!rules && (text = at(/<!--[^]*?(?:-->|$)/y, place))) push("comment", text);
    else if (!rules && (text = at(TAG, place))) push("keyword", text);
    else if (rules && (text = at(rules.comment, place))) push("comment", text);
    else if ((text = at(rules ? rules.strings : /"[^"\n]*"|'[^'\n]*'/y, place))) push("string", text);
    else if (rules && (text = at(NUMBER, place))) push("number", text);
    else if ((text = at(WORD, place))) {
      const key = fold ? text.toLowerCase() : text;
      if (rules && rules.words.has(key)) push("keyword", text);
      else if (code[place + text.length] === "(") push("call", text);
      else plain += text;
    } else {
      text = code[place];
      plain += text;
    }
    place += text.length;
  }
  if (plain) made.push(["", plain]);
  return made;
}

/** @param {string} code @returns {[string, string][]} */
function lines(code) {
  return code.split(/(?<=\n)/).map((line) => {
    if (/^(\+\+\+|---|diff |index )/.test(line)) return ["comment", line];
    if (line.startsWith("@@")) return ["number", line];
    return [line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : "", line];
  });
}
