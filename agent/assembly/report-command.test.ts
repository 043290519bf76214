import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { reportCommand } from './report-command.ts'

const board = fileURLToPath(new URL('../../../agent/testing/boards/pi-4-weak-supply', import.meta.url))

async function reported(...argv: readonly string[]) {
  const [stdout, stderr]: [string[], string[]] = [[], []]
  const code = await reportCommand(argv, {
    stdout: (text) => void stdout.push(text),
    stderr: (text) => void stderr.push(text),
  })
  return { code, stdout: stdout.join(''), stderr: stderr.join('') }
}

test('a machine is printed as a row, or with all details, also from a part of its files', async (t) => {
  const row = await reported('--root', board)
  t.match(row, { code: 0, stderr: '' })
  t.match(row.stdout, /^\|.*\|\n$/)
  const details = await reported('--root', board, '-o', 'json')
  t.match(JSON.parse(details.stdout), { disks: Array, links: Array, architecture: String })
  t.equal((await reported('--output', 'yaml')).code, 64)
})
