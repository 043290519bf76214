import { test } from 'tap'
import { type Command, readArguments } from './command-line.ts'
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
