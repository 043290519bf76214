/**
 * Which programs the sources start, for the comparison with the packages that are installed. This reads the text: a program whose name
 * is only known at run time is not found.
 */
import { basename } from 'node:path'
import ts from 'typescript'

/** `others` are the words of the same command or script: one may be a program too, as in `nsenter … ip route`. */
export type StartedProgram = { readonly name: string; readonly place: string; readonly others: readonly string[] }

/** Functions that start a program → which argument is its name, or an array with the whole command. */
const starters: Readonly<Record<string, number>> = {
  execFile: 0,
  execFileSync: 0,
  spawn: 0,
  spawnSync: 0,
  startProgram: 0,
  command: 0,
  commandOrThrow: 0,
  runTool: 0,
  runToolOrThrow: 1,
  inSpace: 1,
  run: 0,
}
/** A function of the file itself that starts what its first argument names. */
const passesOn =
  /^promisify\(execFile\)$|\b(?:execFile\)?|spawn|spawnSync|command|commandOrThrow|run)\(\s*(?:file|program|command|line\[0\]|\.\.\.)/
const namesProgram = /\b(?:file|program|command|line)\b/
/** `run` of these is not a program of this machine. */
const otherReceivers = /kubectl|machine|queue|loop|manager/i
const programName = /^(?:\/(?:usr\/)?(?:local\/)?s?bin\/)?[a-z][\w.+-]*$/
const deepest = 4

type Values = ReadonlyMap<string, ts.Node>

/** Programs that TypeScript source starts by their name. */
export function programsInSource(path: string, text: string): readonly StartedProgram[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const own = valuesOf(file)
  const found: StartedProgram[] = []
  const visit = (node: ts.Node): void => {
    const started = ts.isCallExpression(node) ? startedBy(node, own) : undefined
    if (started) {
      const { line } = file.getLineAndCharacterOfPosition(started.getStart(file))
      const others = wordsIn(node)
      for (const name of textsOf(started, own))
        if (programName.test(name)) found.push({ name: basename(name), place: `${path}:${line + 1}`, others })
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

/** Words of a shell script where a command can be, without those of the shells and `functions`. */
export function programsInScript(
  path: string,
  text: string,
  functions: ReadonlySet<string>,
): readonly StartedProgram[] {
  const bare = withoutTexts(text)
  const names = [...bare.matchAll(commandPlace)].flatMap(({ 1: name }) => name ?? [])
  return [...new Set(names)]
    .filter((name) => !functions.has(name) && !ofTheShell.has(name))
    .map((name) => ({ name, place: path, others: [] }))
}

export function functionsOf(script: string): readonly string[] {
  return [...script.matchAll(/^\s*(\w+)\s*\(\)/gm)].flatMap(({ 1: name }) => name ?? [])
}

const commandPlace =
  /(?:^|[|;&{]|(?<![=(\w$])\((?!\()|\b(?:then|do|else|exec|if|while|until|elif|as_root)\s|!\s|\$\()[ \t]*(?:[A-Za-z_]\w*=[^\s(]*[ \t]+)*([a-z][\w.+-]*)(?=[\s;)]|$)/gm
const ofTheShell = new Set(
  (
    'if then else elif fi for while until do done case esac in function time echo printf read cd exit return local set unset export trap wait ' +
    'shift eval exec test true false command type source kill hash mapfile declare readonly break continue umask pwd shopt ulimit jobs let builtin ' +
    'disown compgen'
  ).split(' '),
)

/** Without comments, here-documents, arithmetic, patterns of `case` and quoted text, but with the commands in it. */
function withoutTexts(script: string): string {
  return script
    .replace(/<<-?\s*(['"]?)(\w+)\1([^\n]*)\n[\s\S]*?\n\s*\2(?=\n|$)/g, '$3')
    .replace(/\\\n/g, ' ')
    .replace(/\$?\(\(.*?\)\)/g, '0')
    .replace(/(^|\s)#.*$/gm, '$1')
    .replace(/'[^']*'|"(?:[^"\\$]|\\[\s\S]|\$(?!\()|\$\((?:[^()]|\([^()]*\))*\))*"/g, (quoted) =>
      quoted.startsWith("'") ? 'TEXT' : ['TEXT', ...(quoted.match(/\$\((?:[^()]|\([^()]*\))*\)/g) ?? [])].join(' '),
    )
    .replace(/^\s*[\w.*?|\-$ [\]]+\)/gm, ' ')
}

function startedBy({ expression, arguments: given }: ts.CallExpression, own: Values): ts.Expression | undefined {
  const name = calledName(expression)
  if (ts.isPropertyAccessExpression(expression))
    return name === 'run' && !otherReceivers.test(expression.expression.getText()) ? given[0] : undefined
  const value = ts.isIdentifier(expression) ? own.get(name) : undefined
  if (value !== undefined) return isStarter(value) ? given[0] : undefined
  return Object.hasOwn(starters, name) ? given[starters[name] ?? 0] : undefined
}

function isStarter(value: ts.Node): boolean {
  const [first] = ts.isFunctionLike(value) ? value.parameters : []
  return passesOn.test(value.getText()) && (first === undefined || namesProgram.test(first.name.getText()))
}

/** `f` of `f()`, `a.f()` and `promisify(f)()`. */
function calledName(called: ts.Expression): string {
  if (ts.isIdentifier(called)) return called.text
  if (ts.isPropertyAccessExpression(called)) return called.name.text
  if (ts.isCallExpression(called) && called.arguments[0]) return calledName(called.arguments[0])
  return ''
}

/** Functions, constants and defaults of parameters of the file, by name. */
function valuesOf(file: ts.SourceFile): Values {
  const values = new Map<string, ts.Node>()
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionDeclaration(node) && node.name) values.set(node.name.text, node)
    if (ts.isVariableDeclaration(node) || ts.isParameter(node) || ts.isBindingElement(node))
      if (ts.isIdentifier(node.name) && node.initializer) values.set(node.name.text, node.initializer)
    ts.forEachChild(node, visit)
  }
  visit(file)
  return values
}

/** What the first word of a command can be. */
function textsOf(node: ts.Node, own: Values, depth = 0): readonly string[] {
  if (depth > deepest) return []
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isConditionalExpression(node))
    return [node.whenTrue, node.whenFalse].flatMap((one) => textsOf(one, own, depth + 1))
  if (ts.isArrayLiteralExpression(node)) return node.elements[0] ? textsOf(node.elements[0], own, depth + 1) : []
  const value = ts.isIdentifier(node) ? own.get(node.text) : undefined
  return value === undefined ? [] : textsOf(value, own, depth + 1)
}

/** Also those of the scripts in it. */
function wordsIn(node: ts.Node): readonly string[] {
  const words: string[] = []
  const visit = (one: ts.Node): void => {
    if (ts.isStringLiteralLike(one)) {
      if (programName.test(one.text)) words.push(basename(one.text))
      else words.push(...[...one.text.matchAll(commandPlace)].flatMap(({ 1: name }) => name ?? []))
    }
    // A function in it is called later, and has its own commands.
    if (!ts.isFunctionLike(one)) ts.forEachChild(one, visit)
  }
  visit(node)
  return words
}
