import { test } from 'tap'
import { readAgentCommandLine } from './command-line.ts'

test('run is the default command', async (t) => {
  const plain = readAgentCommandLine([])
  t.match(plain, {
    want: 'run',
    request: { dataDir: '/var/lib/bramble/agent', dockerSocket: '/var/run/docker.sock', root: '/', logLevel: 'info' },
  })
  t.same(readAgentCommandLine(['run']), plain)
})

test('every option reaches its place', async (t) => {
  const line = readAgentCommandLine(
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
  t.same(readAgentCommandLine(['join', 'https://h:6443', '--token', 'x']), {
    want: 'join',
    argv: ['https://h:6443', '--token', 'x'],
  })
})

test('a mistake is refused with a sentence', async (t) => {
  t.match(readAgentCommandLine(['--dta-dir', 'x']), { want: 'refuse', text: /dta-dir/ })
  t.match(readAgentCommandLine(['start']), { want: 'refuse', text: /start/ })
  t.match(readAgentCommandLine(['--log-level', 'loud']), { want: 'refuse', text: /error, warn, info, debug/ })
  t.match(readAgentCommandLine(['--healthz-port', '99999']), { want: 'refuse', text: /0 to 65535/ })
  t.match(readAgentCommandLine(['--help']), { want: 'help' })
})

test('first-boot takes its own options only; completion is for bash', async (t) => {
  t.match(readAgentCommandLine(['first-boot', '--root', '/r']), {
    want: 'first-boot',
    request: { root: '/r', dataDir: '/var/lib/bramble/agent' },
  })
  t.match(readAgentCommandLine(['first-boot', '--check']), { want: 'refuse', text: /Unknown option '--check'/ })
  t.match(readAgentCommandLine(['completion', 'bash']), { want: 'help', text: /first-boot.*--ca-hash/s })
  t.match(readAgentCommandLine(['--version']), { want: 'help', text: /^bramble-agent \d/ })
})
