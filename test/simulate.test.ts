/** `bramble-controller simulate` as it is installed: the command, and the simulator in the file beside it. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { testFolder } from '../daemon/testing/test-folder.ts'

const program = fileURLToPath(new URL('../../scripts/bramble-controller', import.meta.url))

type Ran = { readonly code: unknown; readonly stdout: string; readonly stderr: string }

function run(...args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(program, ['simulate', ...args], (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

test('a story of a file is simulated by the bundles, and the exit code states its end', async (t) => {
  const folder = testFolder(t)
  const write = async (name: string, fields: object) => {
    const path = join(folder, name)
    const head = { apiVersion: 'bramble.dev/v1alpha1', kind: 'Simulation', machines: [{ name: 'pi-1' }] }
    await writeFile(path, JSON.stringify({ ...head, ...fields }))
    return path
  }
  const pod = (name: string, memory: string) => ({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
    spec: { containers: [{ name: 'main', image: 'nginx', resources: { requests: { memory } } }] },
  })
  const story = [{ event: 'networkOff', machine: 'pi-1', from: '10s', to: '90s' }]
  const fine = await run(await write('fine.yaml', { story, objects: [pod('web', '1Gi')], duration: '3m' }))
  t.match(fine, { code: 0, stdout: /00:00:10 {2}machine pi-1: its network is off\n[\s\S]*Pod default\/web/ })
  const large = await write('large.yaml', { story: [], objects: [pod('large', '64Gi')], duration: '1m' })
  const below = await run(large, '--output', 'json')
  t.equal(below.code, 1, below.stderr)
  t.match(JSON.parse(below.stdout), { isAsWanted: false, workloads: [{ workload: 'Pod default/large' }] })
  const wrong = await run(await write('wrong.yaml', { story: [{ event: 'flood', from: '1m' }] }))
  t.match(wrong, { code: 78, stdout: '', stderr: /story\[0\]\.event: Unsupported value: "flood"/ })
  t.match(await run(), { code: 64, stderr: /Missing argument: use FILE/ })
})
