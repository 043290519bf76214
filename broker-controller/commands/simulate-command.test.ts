import { test } from 'tap'
import { type SimulateFile, simulateCommand } from './simulate-command.ts'

async function run(argv: readonly string[], load?: () => Promise<SimulateFile>) {
  let [stdout, stderr] = ['', '']
  const output = {
    stdout: (text: string) => {
      stdout += text
    },
    stderr: (text: string) => {
      stderr += text
    },
    signal: new AbortController().signal,
  }
  return { code: await simulateCommand(argv, output, load), stdout, stderr }
}

test('the exit code states what became of the simulation', async (t) => {
  const seen: Parameters<SimulateFile>[0][] = []
  const outcome = (value: Awaited<ReturnType<SimulateFile>>) => async (): Promise<SimulateFile> => async (wanted) => {
    seen.push(wanted)
    return value
  }
  t.equal((await run(['story.yaml'], outcome('fine'))).code, 0)
  t.equal((await run(['story.yaml', '--seed', '7', '--output=json'], outcome('below'))).code, 1)
  t.equal((await run(['story.yaml'], outcome('refused'))).code, 78)
  t.equal((await run(['story.yaml'], outcome('failed'))).code, 3)
  t.same(seen.slice(0, 2), [
    { path: 'story.yaml', seed: 1, output: 'text' },
    { path: 'story.yaml', seed: 7, output: 'json' },
  ])
})

test('wrong options are refused, and the help is printed, without the simulator', async (t) => {
  const load = () => Promise.reject(new Error('not to be loaded'))
  t.match(await run([], load), { code: 64, stderr: /Missing argument: use FILE/ })
  t.match(await run(['a', 'b'], load), { code: 64, stderr: /Unexpected/ })
  t.match(await run(['a', '--seed', 'x'], load), {
    code: 64,
    stderr: /Invalid value "x" for --seed: use a whole number/,
  })
  t.match(await run(['--help'], load), {
    code: 0,
    stdout: /bramble-controller simulate \[options\] FILE|simulate FILE/,
  })
})

test('a simulator that is not there is named, with the remedy', async (t) => {
  // The tests run without the bundle.
  t.match(await run(['story.yaml']), { code: 3, stderr: /bramble-simulator\.mjs is missing\. Install the package/ })
})
