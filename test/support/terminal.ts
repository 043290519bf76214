/** A program on a terminal of its own (script of util-linux makes it), and what that terminal shows. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from './wait.ts'

export interface TestTerminal {
  /** The lines of the screen, without spaces at their ends. */
  lines(): readonly string[]
  /** All that the program wrote. */
  readonly raw: () => string
  readonly isAlternate: () => boolean
  readonly isCursorShown: () => boolean
  /** Whether keys are echoed again, and lines end with Enter, as a shell needs it. */
  isCooked(): Promise<boolean>
  /** Waits until the screen matches. */
  shows(pattern: RegExp, withinMs?: number): Promise<string>
  press(keys: string): void
  resize(columns: number, rows: number): Promise<void>
  /** To the program itself. */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Waits for the end of the program; its status. */
  ended(): Promise<number>
}

/** The program is started by a shell that stays, as at a person's terminal. */
export async function openTestTerminal(
  t: { teardown(end: () => Promise<unknown>): void },
  command: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<TestTerminal> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-terminal-'))
  const [device, status, pid] = ['device', 'status', 'pid'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const quoted = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  const shell = [
    'stty cols 110 rows 30',
    `tty > ${device}`,
    `sh -c 'echo $$ > ${pid}; exec "$@"' sh ${quoted}`,
    `echo $? > ${status}.new`,
    `echo '${endMark}'`,
    `mv ${status}.new ${status}`,
    'read -r until_the_test_ends',
  ].join('; ')
  const child = spawn('script', ['--quiet', '--flush', '--command', shell, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, SHELL: '/bin/sh', TERM: 'xterm-256color', NO_COLOR: '', ...env },
  })
  const closed = once(child, 'close')
  t.teardown(async () => {
    child.stdin.end('\n')
    child.kill('SIGTERM')
    await closed
    await rm(folder, { recursive: true, force: true })
  })
  const screen = screenModel()
  let raw = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    raw += text
    screen.write(text)
  })
  const stty = async (...args: readonly string[]) => {
    const terminal = (await readFile(device, 'utf8')).trim()
    return (await promisify(execFile)('stty', ['-F', terminal, ...args])).stdout
  }
  // With all that it wrote: the terminal passes it on in order, and later than the program ends.
  const statusOf = async () =>
    existsSync(status) && raw.includes(endMark) && { code: Number(await readFile(status, 'utf8')) }
  return {
    lines: screen.lines,
    raw: () => raw,
    isAlternate: () => screen.modes.get('1049') === true,
    isCursorShown: () => screen.modes.get('25') !== false,
    isCooked: async () => {
      const all = await stty('-a')
      return / icanon\b/.test(all) && / echo\b/.test(all)
    },
    shows: (pattern, withinMs = 60_000) =>
      eventually(
        `${pattern} on the screen`,
        () => {
          const text = screen.lines().join('\n')
          if (!pattern.test(text)) throw new Error(text)
          return text
        },
        { withinMs, everyMs: 50 },
      ),
    press: (keys) => void child.stdin.write(keys),
    async resize(columns, rows) {
      screen.clear()
      await stty('cols', String(columns), 'rows', String(rows))
    },
    async kill(signal) {
      process.kill(Number(await readFile(pid, 'utf8')), signal)
    },
    ended: async () => (await eventually('the end of the program', statusOf, { withinMs: 60_000, everyMs: 100 })).code,
  }
}

const escapeByte = '\x1b'
/** On the screen below what the program wrote last. */
const endMark = 'The program has ended.'

/** Only what our programs send: to a place, clear, styles and private modes. Throws at everything else that controls a terminal. */
function screenModel() {
  let lines: string[] = []
  let [row, column] = [0, 0]
  let rest = ''
  const modes = new Map<string, boolean>()
  const known = new RegExp(`^${escapeByte}\\[(\\??)([\\d;]*)([A-Za-z])`)
  const next = new RegExp(`[${escapeByte}\\r\\n]`)
  const put = (text: string) => {
    const line = (lines[row] ?? '').padEnd(column)
    lines[row] = line.slice(0, column) + text + line.slice(column + text.length)
    column += text.length
  }
  const control = (isPrivate: boolean, numbers: string, letter: string) => {
    const [first = 1, second = 1] = numbers.split(';').map(Number)
    if (isPrivate && 'hl'.includes(letter)) modes.set(numbers, letter === 'h')
    else if (letter === 'H') [row, column] = [first - 1, second - 1]
    else if (letter === 'K') lines[row] = ''
    else if (letter === 'J') lines = []
    else if (letter !== 'm') throw new Error(`Unexpected control sequence ${JSON.stringify(numbers + letter)}`)
  }
  /** Acts on what `rest` begins with, and returns its length; 0: its end has not come. */
  const take = (): number => {
    const [all, isPrivate, numbers = '', letter = ''] = known.exec(rest) ?? []
    if (all !== undefined) {
      control(isPrivate === '?', numbers, letter)
      return all.length
    }
    if (rest.startsWith(escapeByte)) {
      if (rest.length > 20) throw new Error(`Unexpected control sequence ${JSON.stringify(rest.slice(0, 20))}`)
      return 0
    }
    const end = rest.search(next)
    if (end === 0) {
      if (rest.startsWith('\n')) row += 1
      column = 0
      return 1
    }
    const plain = end < 0 ? rest : rest.slice(0, end)
    put(plain)
    return plain.length
  }
  return {
    modes,
    clear: () => {
      lines = []
    },
    lines: () => Array.from(lines, (line = '') => line.trimEnd()),
    write(text: string) {
      rest += text
      while (rest !== '') {
        const taken = take()
        if (taken === 0) return
        rest = rest.slice(taken)
      }
    },
  }
}
