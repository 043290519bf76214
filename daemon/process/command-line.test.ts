import { test } from 'tap'
import type { Command } from './command.ts'
import { printText, readArguments, wordsOf } from './command-line.ts'
import { bashCompletion } from './completion.ts'
import { helpText } from './help-text.ts'

const show = {
  name: 'fleet show',
  about: 'show nodes',
  forms: { list: 'list all nodes', 'one NODE': 'show one node', 'copy to [FILE]': '' },
  defaultForm: 'list',
  options: {
    port: { value: 'PORT', help: 'port to use', range: [0, 65_535], default: '80' },
    host: { value: 'NAME', help: 'host to ask', repeated: true },
    output: { value: 'FORMAT', help: 'format', short: 'o', choices: ['text', 'json'] },
    config: { value: 'FILE', help: 'configuration' },
    folder: { value: 'DIR', help: 'folder', defaultText: 'the current one' },
    wide: { help: 'show more columns' },
  },
} as const satisfies Command

const fleet: Command = {
  name: 'fleet',
  about: 'a fleet',
  forms: { '': '' },
  options: { version: { help: 'print the version' } },
  commands: { show },
}

test('values are given by name with their type and their default', async (t) => {
  const read = readArguments(show, ['one', 'pi-1', '--host', 'a', '--host=b', '-o', 'json', '--wide'])
  if (read.want !== 'act') return t.fail(read.text)
  const { host, port, output, wide, config } = read.values
  t.same(
    { host, port, output, wide, config },
    { host: ['a', 'b'], port: 80, output: 'json', wide: true, config: undefined },
  )
  t.same([read.form, read.args], ['one NODE', ['pi-1']])
  t.same(
    read.typed.map(({ argument }) => argument),
    ['--host=a', '--host=b', '--output=json', '--wide'],
  )
  t.match(readArguments(show, []), { want: 'act', form: 'list', args: [], values: { host: [], wide: false } })
  t.match(readArguments(show, ['copy', 'to']), { want: 'act', form: 'copy to [FILE]', args: [] })
  t.match(readArguments(show, ['copy', 'to', 'a']), { want: 'act', args: ['a'] })
})

test('a repeated option may have several defaults, which those that are typed replace', async (t) => {
  const sizes = { value: 'N', help: 'sizes', range: [1, 99], repeated: true, default: ['1', '10'] } as const
  const measure = {
    name: 'measure',
    about: 'measure',
    forms: { '': '' },
    options: { sizes },
  } as const satisfies Command
  t.match(readArguments(measure, []), { values: { sizes: [1, 10] } })
  t.match(readArguments(measure, ['--sizes', '5']), { values: { sizes: [5] } })
  t.match(helpText(measure), '--sizes N   sizes (1 to 99; may be repeated; default: 1, 10)')
})

test('a mistake is refused in a sentence that names the option, the value and the remedy', async (t) => {
  for (const [argv, text] of [
    [['--prot', '1'], "Unknown option '--prot'"],
    [['--port'], "Option '--port <value>' argument missing"],
    [['--port', '70000'], 'Invalid value "70000" for --port: use a whole number from 0 to 65535'],
    [['--port', '1e3'], 'Invalid value "1e3" for --port: use a whole number from 0 to 65535'],
    [['-o', 'xml'], 'Invalid value "xml" for --output: use one of text, json'],
    [['one'], 'Unexpected "one": use one NODE'],
    [['list', 'all'], 'Unexpected "list all": use list'],
    [['none'], 'Unexpected "none": use list, one NODE, copy to [FILE]'],
  ] as const) {
    t.same(readArguments(show, argv), { want: 'refuse', text: `${text}.\nTry 'fleet show --help'.\n` })
  }
})

test('help shows forms, values, ranges, choices and defaults, in lines of a terminal', async (t) => {
  const help = helpText(show)
  t.match(readArguments(show, ['list', '-h']), { want: 'help', text: help })
  t.match(help, /^Usage: fleet show \[list\] \[options\]\n {7}fleet show one NODE \[options\]\n/)
  t.match(help, /\n {2}--port PORT +port to use \(0 to 65535; default: 80\)\n/)
  t.match(help, /\n {2}--host NAME +host to ask \(may be repeated\)\n/)
  t.match(help, /\n {2}-o, --output FORMAT +format: text, json\n/)
  t.match(help, /\(default: the current one\)/)
  t.match(helpText(fleet), /Commands:\n {2}show {2,}show nodes\n/)
  const long = helpText({ ...show, text: 'word '.repeat(60).trim() })
  t.ok(long.split('\n').every((line) => line.length <= 100))
})

test('bash completes commands, options and values', async (t) => {
  const script = bashCompletion(fleet)
  const complete = async (...words: readonly string[]) => {
    const { execFileSync } = await import('node:child_process')
    const program = `${script}\ncompopt() { :; }\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _fleet; echo "\${COMPREPLY[*]}"`
    return execFileSync('bash', ['-c', program, 'bash', 'fleet', ...words], { encoding: 'utf8' }).trim()
  }
  t.equal(await complete('sh'), 'show')
  t.equal(await complete('show', ''), 'list one copy --port --host --output --config --folder --wide --help')
  t.equal(await complete('show', 'copy', 't'), 'to')
  t.equal(await complete('show', '--wide', '--po'), '--port')
  t.equal(await complete('show', '-o', ''), 'text json')
  t.equal(await complete('show', '--output', '=', 'j'), 'json')
  t.equal(await complete('show', 'one', 'pi-1', '--fol'), '--folder')
  t.match(await complete('show', '--folder', '/et'), '/etc')
  t.equal(await complete('show', '--port', ''), '')
})

test('help is for stdout with status 0, a mistake for stderr with status 64', (t) => {
  const printed: string[] = []
  const to = {
    stdout: (text: string) => void printed.push(`out ${text}`),
    stderr: (text: string) => void printed.push(`err ${text}`),
  }
  t.equal(printText({ want: 'help', text: 'usage' }, to), 0)
  t.equal(printText({ want: 'refuse', text: 'no' }, to), 64)
  t.same(printed, ['out usage', 'err no'])
  t.end()
})

test('a range includes its ends', (t) => {
  const limited = { ...show, options: { port: { value: 'PORT', help: '', range: [1, 9] } } } as const satisfies Command
  const portOf = (text: string) => {
    const read = readArguments(limited, ['--port', text])
    return read.want === 'act' ? read.values.port : read.want
  }
  t.same(['0', '1', '9', '10', ' 1', '1.5'].map(portOf), ['refuse', 1, 9, 'refuse', 'refuse', 'refuse'])
  t.end()
})

test('values are text where no range makes them numbers, and the last of an option that is not repeated counts', (t) => {
  const read = readArguments(show, ['--config', '12', '--config', '13', '--host', '7'])
  if (read.want !== 'act') return t.fail(read.text)
  t.same([read.values.config, read.values.host], ['13', ['7']])
  t.same(readArguments({ ...show, options: { ...show.options, wide: { help: '' } } }, ['--wide=1']).want, 'refuse')
  t.end()
})

test('a form with NAME... takes any number of names, others no more than they have', (t) => {
  const command = {
    name: 'fleet issue',
    about: '',
    forms: { 'issue server NAME...': '', 'issue authority': '' },
    options: {},
  } as const satisfies Command
  t.match(readArguments(command, ['issue', 'server', 'a', 'b', 'c']), { args: ['a', 'b', 'c'] })
  const text = (why: string) => ({ want: 'refuse', text: `${why}.\nTry 'fleet issue --help'.\n` })
  t.same(readArguments(command, ['issue', 'server']), text('Unexpected "issue server": use issue server NAME...'))
  t.same(
    readArguments(command, ['issue', 'authority', 'a']),
    text('Unexpected "issue authority a": use issue authority'),
  )
  t.same(readArguments(command, ['issue']), text('Unexpected "issue": use issue server NAME..., issue authority'))
  t.same(readArguments(command, []), text('Missing argument: use issue server NAME..., issue authority'))
  t.same(wordsOf('issue server NAME...'), ['issue', 'server'])
  t.same(wordsOf(''), [])
  t.end()
})

test('a command without forms takes no arguments, and names its commands if it has some', (t) => {
  const alone = { name: 'fleet end', about: '', forms: { '': '' }, options: {} } as const satisfies Command
  t.match(readArguments(alone, []), { want: 'act', form: '', args: [] })
  t.match(readArguments(alone, ['now']), { text: `Unexpected "now".\nTry 'fleet end --help'.\n` })
  t.match(readArguments(fleet, ['now']), { text: `Unexpected "now": use show.\nTry 'fleet --help'.\n` })
  t.end()
})
