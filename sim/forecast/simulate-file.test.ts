import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { testFolder } from '../../daemon/testing/test-folder.ts'
import { simulateFile } from './simulate-file.ts'

const head = { apiVersion: 'bramble.dev/v1alpha1', kind: 'Simulation' }
const deployment = (resources: object = {}, replicas = 1) => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } },
  spec: {
    ...{ replicas, selector: { matchLabels: { app: 'web' } } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        containers: [
          {
            // The program of the image is not there: it does not matter.
            ...{ name: 'web', image: 'nginx:1.27', command: ['/no/program'], resources },
            env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'key', key: 'token' } } }],
          },
        ],
      },
    },
  },
})

async function simulated(t: Test, fields: object, output: 'text' | 'json' = 'json', seed = 1) {
  const path = join(testFolder(t), 'story.yaml')
  await writeFile(path, JSON.stringify({ ...head, machines: [{ name: 'pi', count: 2 }], story: [], ...fields }))
  let [stdout, stderr] = ['', '']
  const outcome = await simulateFile(
    { path, seed, output },
    {
      stdout: (text) => {
        stdout += text
      },
      stderr: (text) => {
        stderr += text
      },
      signal: new AbortController().signal,
      nowMs: () => 0,
    },
  )
  return { outcome, stdout, stderr }
}

test('a machine that loses its power loses its pod to another one, and one seed gives the same text each time', async (t) => {
  const story = [
    { event: 'powerOff', machine: 'pi-1', from: '10s', to: '7m' },
    { event: 'powerOff', machine: 'pi-2', from: '8m', to: '9m' },
  ]
  const fields = { objects: [deployment()], story, duration: '10m' }
  const { outcome, stdout, stderr } = await simulated(t, fields, 'text')
  t.same({ outcome, stderr }, { outcome: 'fine', stderr: '' })
  t.match(stdout, /^10m of 2 machines and 1 workloads, seed 1\nNote: Not in the manifests.*Secret default\/key\n/)
  t.match(stdout, /00:00:10 {2}machine pi-1: the power is off\n00:00:\d\d {2}machine pi-1: NotReady/)
  t.match(
    stdout,
    /evicted from pi-[12] \(its machine is not ready\)\n.*placed on pi-|Deployment default\/web {2}1 .* 1 of 1/,
  )
  t.match(stdout, /At the end all workloads have the pods that they want\.\n$/)
  t.equal((await simulated(t, fields, 'text')).stdout, stdout)
})

test('a workload without room is below wanted at the end', async (t) => {
  const large = deployment({ requests: { memory: '64Gi' } })
  const { outcome, stdout } = await simulated(t, { objects: [large], duration: '1m' })
  t.equal(outcome, 'below')
  const { workloads, isAsWanted } = JSON.parse(stdout)
  t.equal(isAsWanted, false)
  t.match(workloads, [{ workload: 'Deployment default/web', readyAtEnd: 0, problems: [/Insufficient memory/] }])
})

test('a file that cannot be used is refused, and so are objects that the API does not accept', async (t) => {
  t.match(await simulated(t, { machines: [] }), {
    outcome: 'refused',
    stderr: /story\.yaml is not valid:\n {2}machines: Required/,
  })
  t.match(await simulated(t, { manifests: ['absent.yaml'] }), {
    outcome: 'refused',
    stderr: /^Cannot read the manifest/,
  })
  t.match(await simulated(t, { backup: 'story.yaml' }), {
    outcome: 'refused',
    stderr: /^Cannot use the backup .*story\.yaml/,
  })
  t.match(await simulated(t, { objects: [deployment({}, -1)], duration: '1m' }), {
    outcome: 'refused',
    stderr:
      /^The API does not accept:\n {2}.*story\.yaml: objects\[0\]: Deployment\.apps "web" is invalid: spec\.replicas/,
  })
})
