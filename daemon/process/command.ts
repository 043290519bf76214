/** A row of the table of commands: what may be typed, and its help. */

export type Option = {
  /** The name of its value in the help, like FILE; an option without one is a switch. */
  readonly value?: string
  readonly help: string
  readonly short?: string
  readonly repeated?: true
  readonly choices?: readonly string[]
  /** A whole number within these bounds. */
  readonly range?: readonly [least: number, most: number]
  /** A list is that of a repeated option. */
  readonly default?: string | readonly string[]
  /** Shown in place of `default`, for a default that is determined elsewhere. */
  readonly defaultText?: string
}
export type Options = { readonly [name: string]: Option }

/** What may follow a command's name → its help: words, and in capitals placeholders, as `issue server NAME...` or `[FILE]`. */
export type Forms = { readonly [form: string]: string }

export type Command<O extends Options = Options, F extends Forms = Forms> = {
  /** As it is typed, with the program: `bramble-agent join`. */
  readonly name: string
  /** One line for the help of the program. */
  readonly about: string
  /** The text of the command's own help below its usage; without it `about`. */
  readonly text?: string
  /** The lines of the usage, without the name; without it they are made of the forms. */
  readonly usage?: readonly string[]
  readonly options: O
  readonly forms: F
  /** The form that is meant where only options are given. */
  readonly defaultForm?: string
  readonly commands?: { readonly [word: string]: Command }
  readonly end?: string
}
