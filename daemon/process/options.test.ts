import { test } from 'tap'
import { readOptions } from './options.ts'

const config = {
  allowPositionals: true,
  options: { port: { type: 'string', default: '80' }, host: { type: 'string', multiple: true } },
} as const

test('what was typed is given by name, with the defaults', async (t) => {
  const read = readOptions(['run', '--host', 'a', '--host=b'], config)
  t.match(read, { ok: true, value: { values: { port: '80', host: ['a', 'b'] }, positionals: ['run'] } })
})

test('a mistyped option is reported in a sentence, without a stack trace', async (t) => {
  t.match(readOptions(['--hots', 'a'], config), { ok: false, why: /^Unknown option '--hots'/ })
  t.match(readOptions(['--port'], config), { ok: false, why: /^Option '--port <value>' argument missing$/ })
  for (const argv of [['--hots'], ['--port']]) {
    t.notMatch(readOptions(argv, config), { why: /TypeError|\n/ })
  }
})
