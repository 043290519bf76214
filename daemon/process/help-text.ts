/** A command's row of the table of options → the text of its --help, which is also its man page. */
import type { Command, Option } from './command.ts'

const helpOption = { help: 'print this text', short: 'h' } as const
const lineLength = 100

/** Usage, commands, forms and options, wrapped at 100 columns. */
export function helpText({
  name,
  about,
  text = about,
  usage,
  forms,
  defaultForm,
  options,
  commands = {},
  end,
}: Command): string {
  const made = Object.keys(forms).map((form) =>
    form === defaultForm ? `[${form}] [options]` : `${form} [options]`.trim(),
  )
  const uses = (usage ?? made).map((line, at) => `${at === 0 ? 'Usage:' : '      '} ${name} ${line}`)
  const rows = Object.entries({ ...options, help: helpOption }).map(
    ([name, option]) => [headOf(name, option), tailOf(option)] as const,
  )
  const described = Object.entries(forms).filter(([, help]) => help !== '')
  const parts = [
    uses.join('\n'),
    wrapped(text, 0),
    listed('Commands:', [...Object.entries(commands).map(([word, { about }]) => [word, about] as const), ...described]),
    listed('Options:', rows),
    ...(end === undefined ? [] : [wrapped(end, 0)]),
  ]
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}

function listed(title: string, rows: readonly (readonly [head: string, help: string])[]): string {
  const longest = Math.max(0, ...rows.map(([head]) => head.length).filter((length) => length <= 24))
  const indent = longest + 4
  const lines = rows.map(([head, help]) => {
    const first = head.length > longest ? `  ${head}\n${' '.repeat(indent)}` : `  ${head.padEnd(longest + 2)}`
    return `${first}${wrapped(help, indent)}`
  })
  return lines.length === 0 ? '' : [title, ...lines].join('\n')
}

function wrapped(text: string, indent: number): string {
  const paragraphs = text.split('\n\n').map((paragraph) => {
    const lines: string[] = []
    for (const word of paragraph.split(/\s+/)) {
      const last = lines.at(-1)
      if (last === undefined || indent + last.length + 1 + word.length > lineLength) lines.push(word)
      else lines[lines.length - 1] = `${last} ${word}`
    }
    return lines.join(`\n${' '.repeat(indent)}`)
  })
  return paragraphs.join(`\n\n${' '.repeat(indent)}`)
}

function headOf(name: string, { short, value }: Option): string {
  return `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`
}

function tailOf({ help, choices, range, repeated, default: filled, defaultText }: Option): string {
  const shown = defaultText ?? (typeof filled === 'string' ? filled : filled?.join(', '))
  const notes = [
    ...(range === undefined ? [] : [`${range[0]} to ${range[1]}`]),
    ...(repeated ? ['may be repeated'] : []),
    ...(shown === undefined ? [] : [`default: ${shown}`]),
  ]
  return `${help}${choices === undefined ? '' : `: ${choices.join(', ')}`}${notes.length === 0 ? '' : ` (${notes.join('; ')})`}`
}
