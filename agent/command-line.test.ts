import { test } from 'tap'
import { readCommandLine } from './command-line.ts'

test('run is what an agent does when nothing else is said', async (t) => {
  const plain = readCommandLine([])
  t.match(plain, {
    want: 'run',
    request: { dataDir: '/var/lib/bramble/agent', dockerSocket: '/var/run/docker.sock', root: '/', logLevel: 'info' },
  })
  t.same(readCommandLine(['run']), plain)
})

test('every option reaches its place', async (t) => {
  const line = readCommandLine(
    '--data-dir=/d --config=/c --docker-socket /s --healthz-port 0 --root /r --log-format json --log-level debug --check'.split(
      ' ',
    ),
  )
  t.same(line, {
    want: 'run',
    request: {
      dataDir: '/d',
      configPath: '/c',
      nodeName: undefined,
      dockerSocket: '/s',
      healthzPort: 0,
      root: '/r',
      logFormat: 'json',
      logLevel: 'debug',
      check: true,
    },
  })
})

test('what follows join is for join to read', async (t) => {
  t.same(readCommandLine(['join', 'https://h:6443', '--token', 'x']), {
    want: 'join',
    argv: ['https://h:6443', '--token', 'x'],
  })
})

test('a mistake is refused with a sentence', async (t) => {
  t.match(readCommandLine(['--dta-dir', 'x']), { want: 'refuse', why: /dta-dir/ })
  t.match(readCommandLine(['start']), { want: 'refuse', why: /start/ })
  t.match(readCommandLine(['--log-level', 'loud']), { want: 'refuse', why: /error, warn, info, debug/ })
  t.match(readCommandLine(['--healthz-port', '99999']), { want: 'refuse', why: /0 to 65535/ })
  t.match(readCommandLine(['--help']), { want: 'help' })
})
