/** Measures how a namespace with very many pods that wait is removed, and how a controller ends beside them. `--help` prints the usage. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Pod } from '../api/pod.ts'
import type { Deployment } from '../api/workloads/deployment.ts'
import { readKubeconfig } from '../broker-controller/commands/connection/kubeconfig.ts'
import { controllerReference } from '../broker-controller/controllers/workloads/controller-ref.ts'
import { newReplicaSet } from '../broker-controller/controllers/workloads/deployments/deployment-revisions.ts'
import { openStore } from '../broker-controller/data-directory/open-store.ts'
import { openEtcdStore } from '../broker-controller/store/etcd/etcd-store.ts'
import type { Store } from '../broker-controller/store/store.ts'
import { type ApiClient, apiClient } from '../daemon/api-client.ts'
import { systemClock as clock } from '../daemon/clock.ts'
import { openLog } from '../daemon/log.ts'
import { type Program, startProgram } from '../test/support/program.ts'
import { type Members, startMembers } from './fleet/members.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const namespace = 'many'
const containers = { containers: [{ name: 'main', image: 'web:1' }] }

const {
  pods,
  what,
  wait,
  store: kind,
} = benchmarkOptions({
  name: 'node dist/bench/many-pods.js',
  text: `Creates pods of one Deployment in the store of a controller, without nodes, starts the controller, and removes them. Prints the time until they
are gone, the longest answer to an administrator meanwhile, and the memory of the controller. Needs no root.`,
  options: {
    pods: { value: 'N', help: 'number of pods', range: [1, 1_000_000], default: '30000' },
    what: {
      value: 'WHAT',
      help: 'delete the namespace, the Deployment, the Deployment in the foreground, or stop the controller while the Deployment wants more pods',
      choices: ['namespace', 'deployment', 'foreground', 'stop'],
      default: 'namespace',
    },
    store: {
      value: 'KIND',
      help: 'where the objects are; etcd: three members on this machine, without fsync',
      choices: ['sqlite', 'etcd'],
      default: 'sqlite',
    },
    wait: { value: 'S', help: 'give up after so many seconds', range: [1, 100_000], default: '600' },
  },
})

const folder = await mkdtemp(join(tmpdir(), 'many-pods-'))
const ends: (() => Promise<unknown>)[] = []
try {
  const members = kind === 'etcd' ? await startMembers() : undefined
  if (members !== undefined) ends.push(members.end)
  await run(folder, members)
} finally {
  for (const end of ends.reverse()) await end()
  await rm(folder, { recursive: true, force: true })
}

async function run(dataDir: string, members: Members | undefined): Promise<void> {
  await fillStore(dataDir, members)
  const main = fileURLToPath(new URL('../broker-controller/main.js', import.meta.url))
  const config = join(dataDir, 'controller.yaml')
  const file = {
    apiVersion: 'bramble.dev/v1alpha1',
    kind: 'ControllerConfiguration',
    podNetwork: 'node',
    ...members?.fields(namespace),
  }
  await writeFile(config, JSON.stringify(file))
  const address = ['--bind-address', '127.0.0.1', '--api-port', '0', '--mqtt-port', '0', '--log-format', 'json']
  const program = startProgram(
    [process.execPath, '--max-semi-space-size=4', main, 'run', '--data-dir', dataDir, '--config', config, ...address],
    (end) => void ends.push(end),
  )
  const { kubeconfig } = await program.logged('Controller ready')
  const client = apiClient({ ...(await readKubeconfig(String(kubeconfig))), deadlineMs: 120_000 })
  const removed = await remove(client)
  const beganMs = performance.now()
  const ended = await Promise.race([program.stop(), delay(60_000, 'not ended', { ref: false })])
  const stopMs = performance.now() - beganMs
  const rows = [...removed, ['end of the controller', `${(stopMs / 1000).toFixed(1)} s, ${ended}`], blocked(program)]
  console.log(rows.map(([name, figure]) => `| ${name} | ${figure} |`).join('\n'))
}

type Row = readonly [string, string]

async function remove(client: ApiClient): Promise<readonly Row[]> {
  await delay(5000)
  if (what === 'stop') return []
  const path =
    what === 'namespace' ? `/api/v1/namespaces/${namespace}` : `/apis/apps/v1/namespaces/${namespace}/deployments/web`
  const gone = what === 'namespace' ? path : `/api/v1/namespaces/${namespace}/pods?limit=1`
  const beganMs = performance.now()
  await client.delete(path, undefined, what === 'foreground' ? { propagationPolicy: 'Foreground' } : undefined)
  let longestMs = 0
  for (;;) {
    const askedMs = performance.now()
    const { status, body } = await client.get(gone)
    longestMs = Math.max(longestMs, performance.now() - askedMs)
    const tookMs = performance.now() - beganMs
    const isGone = what === 'namespace' ? status === 404 : (body as { items?: readonly unknown[] }).items?.length === 0
    if (isGone || tookMs > wait * 1000) {
      const left = isGone ? 'gone' : `${await countPods(client)} pods are left`
      return [
        [`${what} with ${pods} pods`, `${left} after ${(tookMs / 1000).toFixed(1)} s`],
        ['longest answer to a GET', `${longestMs.toFixed(0)} ms`],
      ]
    }
    await delay(250)
  }
}

async function countPods(client: ApiClient): Promise<number> {
  const { body } = await client.get(`/api/v1/namespaces/${namespace}/pods?limit=1`)
  const { metadata, items } = body as { metadata?: { remainingItemCount?: number }; items?: readonly unknown[] }
  return (metadata?.remainingItemCount ?? 0) + (items?.length ?? 0)
}

function blocked({ lines }: Program): Row {
  const times = lines
    .filter(({ message }) => message === 'Event loop blocked')
    .map(({ blockedMs }) => Number(blockedMs))
  return ['logged "Event loop blocked"', `${times.length} times, at most ${Math.max(0, ...times)} ms`]
}

async function fillStore(dataDir: string, members: Members | undefined): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line) })
  const { store } =
    members === undefined
      ? await openStore({ dataDir, clock, log })
      : await openEtcdStore({ ...members.place(namespace), clock, log })
  const contents = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } } as const
  await store.create('namespaces', { ...contents, spec: { finalizers: ['kubernetes'] } })
  const owner = await store.create('deployments', aDeployment(what === 'stop' ? 2_000_000_000 : pods))
  const set = await store.create('replicasets', newReplicaSet(owner, [], 1n))
  const { labels } = set.spec.template?.metadata ?? {}
  const pod = (at: number): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${set.metadata.name}-${at}`,
      namespace,
      ...(labels && { labels }),
      ownerReferences: [controllerReference(set)],
    },
    spec: {
      ...containers,
      restartPolicy: 'Always',
      schedulerName: 'default-scheduler',
      terminationGracePeriodSeconds: 30,
    },
    status: { phase: 'Pending', qosClass: 'BestEffort' },
  })
  await createAll(store, pod, members === undefined ? 500 : 50)
  await store.close()
}

async function createAll(store: Store, pod: (at: number) => Pod, together: number): Promise<void> {
  for (let at = 0; at < pods; at += together) {
    const some = Array.from({ length: Math.min(together, pods - at) }, (_, index) => pod(at + index))
    await Promise.all(some.map((one) => store.create('pods', one)))
  }
}

function aDeployment(replicas: number): Deployment {
  const labels = { app: 'web' }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: containers } },
  }
}
