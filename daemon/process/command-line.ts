/**
 * Command lines from a table of options and forms: what was typed is read and checked, help and shell completion are rendered from
 * the same rows. `parseArgs` of Node reads the arguments.
 */
import { parseArgs } from 'node:util'
import type { Command, Forms, Option, Options } from './command.ts'
import { exitCode } from './exit-code.ts'
import { helpText } from './help-text.ts'

type One<O extends Option> = O extends { choices: readonly (infer Choice)[] }
  ? Choice
  : O extends { range: readonly number[] }
    ? number
    : string
type ValueOf<O extends Option> = O extends { value: string }
  ? O extends { repeated: true }
    ? readonly One<O>[]
    : One<O> | (O extends { default: string } ? never : undefined)
  : boolean
export type Values<O extends Options> = { readonly [Name in keyof O]: ValueOf<O[Name]> }

export type Arguments<O extends Options, F extends Forms> = {
  readonly want: 'act'
  readonly values: Values<O>
  readonly form: keyof F & string
  /** What was typed for the placeholders of the form. */
  readonly args: readonly string[]
  /** The options that were typed, in order, each as one argument. */
  readonly typed: readonly { readonly name: string; readonly argument: string }[]
}
/** Nothing to do but to print this text. */
export type PrintText = { readonly want: 'help' | 'refuse'; readonly text: string }

/** `argv`: what follows the command's name. */
export function readArguments<const O extends Options, const F extends Forms>(
  command: Command<O, F>,
  argv: readonly string[],
): Arguments<O, F> | PrintText {
  const read = parsed(command.options, argv)
  if (typeof read === 'string') return refuse(command, read)
  const given: { readonly [name: string]: unknown } = read.values
  if (given['help'] === true) return { want: 'help', text: helpText(command) }
  const { tokens, positionals } = read
  const values: { [name: string]: unknown } = {}
  for (const [name, option] of Object.entries<Option>(command.options)) {
    const texts = textsOf(given[name] ?? option.default)
    const wrong = texts.find((text) => !isValid(option, text))
    if (wrong !== undefined) return refuse(command, invalidValue(`--${name}`, wrong, remedyOf(option)))
    const made = option.range === undefined ? texts : texts.map(Number)
    values[name] = option.value === undefined ? given[name] === true : option.repeated ? made : made[0]
  }
  const found = formOf(command, positionals)
  if (found === undefined) return refuse(command, formProblem(command, positionals))
  const typed = tokens.flatMap((one) =>
    one.kind === 'option'
      ? [{ name: one.name, argument: `--${one.name}${one.value === undefined ? '' : `=${one.value}`}` }]
      : [],
  )
  // Each value was made as its row in `options` describes, and the form is one of `forms`.
  return { want: 'act', values: values as Values<O>, typed, form: found.form as keyof F & string, args: found.args }
}

/** Prints help to stdout, and what is wrong to stderr; gives the exit status. */
export function printText(
  { want, text }: PrintText,
  { stdout, stderr }: { readonly stdout: (text: string) => void; readonly stderr: (text: string) => void },
): number {
  if (want === 'help') stdout(text)
  else stderr(text)
  return want === 'help' ? exitCode.fine : exitCode.usage
}

/** What is wrong with the arguments of a command, and where its help is. */
export function refuse({ name }: { readonly name: string }, why: string): PrintText {
  return { want: 'refuse', text: `${why}.\nTry '${name} --help'.\n` }
}

/** `Invalid value "x" for --port: use a whole number from 0 to 65535`, without a full stop. */
export function invalidValue(what: string, value: string, remedy: string): string {
  return `Invalid value ${JSON.stringify(value)} for ${what}: ${remedy}`
}

/** The literal words of a form: `issue server NAME...` → issue, server. */
export function wordsOf(form: string): readonly string[] {
  return form.split(' ').filter((word) => word !== '' && !isPlaceholder(word))
}

const helpOption = { help: 'print this text', short: 'h' } as const

/** What is wrong with it in one sentence, or as `parseArgs` reads it: that throws a TypeError for a typing error. */
function parsed(options: Options, argv: readonly string[]) {
  const rows = Object.entries<Option>({ ...options, help: helpOption }).map(([name, { value, short, repeated }]) => [
    name,
    {
      type: value === undefined ? ('boolean' as const) : ('string' as const),
      multiple: repeated ?? false,
      ...(short === undefined ? {} : { short }),
    },
  ])
  try {
    return parseArgs({ args: [...argv], options: Object.fromEntries(rows), allowPositionals: true, tokens: true })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return (/^Unknown option '[^']*'/.exec(message)?.[0] ?? message).replaceAll('\n', ' ').replace(/\.$/, '')
  }
}

function textsOf(value: unknown): readonly string[] {
  return (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string')
}

function isValid({ choices, range }: Option, text: string): boolean {
  if (choices !== undefined) return choices.includes(text)
  if (range === undefined) return true
  return /^\d+$/.test(text) && Number(text) >= range[0] && Number(text) <= range[1]
}

function remedyOf({ choices, range }: Option): string {
  if (choices !== undefined) return `use one of ${choices.join(', ')}`
  return `use a whole number from ${range?.join(' to ')}`
}

function isPlaceholder(word: string): boolean {
  return /[A-Z]/.test(word)
}

function formOf({ forms, defaultForm }: Command, positionals: readonly string[]) {
  if (positionals.length === 0 && defaultForm !== undefined) return { form: defaultForm, args: [] }
  for (const form of Object.keys(forms)) {
    const words = form.split(' ').filter((word) => word !== '')
    const isFit =
      words.every((word, at) =>
        isPlaceholder(word) ? word.startsWith('[') || positionals[at] !== undefined : word === positionals[at],
      ) &&
      (positionals.length <= words.length || form.endsWith('...'))
    if (isFit) return { form, args: positionals.slice(wordsOf(form).length) }
  }
  return undefined
}

function formProblem({ forms, commands }: Command, positionals: readonly string[]): string {
  const meant = Object.keys(forms).filter((form) => {
    const words = wordsOf(form)
    return words.length > 0 && words.every((word, at) => word === positionals[at])
  })
  const all = meant.length > 0 ? meant : [...Object.keys(commands ?? {}), ...Object.keys(forms)]
  const use = all.filter((form) => form !== '').join(', ')
  if (positionals.length === 0) return `Missing argument: use ${use}`
  return `Unexpected ${JSON.stringify(positionals.join(' '))}${use === '' ? '' : `: use ${use}`}`
}
