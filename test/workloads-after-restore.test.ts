/** A backup that is older than the running pods is restored: controllers count what nodes report, and create nothing twice. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { whyNoDockerd } from './support/dockerd.ts'
import type { Controller } from './support/fleet.ts'
import { joinedFleet } from './support/joined-fleet.ts'
import { image, listening } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const names = ['pi-1', 'pi-2']
const apps = ['web', 'db', 'log', 'work']
const podsWanted = { web: 2, db: 2, log: 2, work: 1 }

function manifests(): string {
  const of = (apiVersion: string, kind: string, name: string, spec: object, pod: object = {}) => {
    const containers = [{ name: 'main', image, command: listening, imagePullPolicy: 'Never' }]
    const template = {
      metadata: { labels: { app: name } },
      spec: { containers, terminationGracePeriodSeconds: 1, ...pod },
    }
    const selector = kind === 'Job' ? {} : { selector: { matchLabels: { app: name } } }
    return { apiVersion, kind, metadata: { name }, spec: { ...selector, template, ...spec } }
  }
  const items = [
    of('apps/v1', 'Deployment', 'web', { replicas: 2 }),
    of('apps/v1', 'StatefulSet', 'db', { replicas: 2, serviceName: 'db', podManagementPolicy: 'Parallel' }),
    of('apps/v1', 'DaemonSet', 'log', {}),
    of('batch/v1', 'Job', 'work', {}, { restartPolicy: 'Never' }),
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}

type PodView = {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly deletionTimestamp?: string
    readonly labels: { readonly app: string }
  }
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

async function podsOf({ kubectl }: Controller): Promise<readonly PodView[]> {
  return JSON.parse(await kubectl('get', 'pods', '-o', 'json')).items
}

/** All pods that are wanted are Ready, and no others are there. */
async function complete(controller: Controller): Promise<readonly string[]> {
  return eventually('all pods are Ready', async () => {
    const pods = await podsOf(controller)
    const count = (app: string) => pods.filter(({ metadata }) => metadata.labels.app === app).length
    const isReady = ({ metadata, status }: PodView) =>
      metadata.deletionTimestamp === undefined &&
      status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true
    const isAll = Object.entries(podsWanted).every(([app, wanted]) => count(app) === wanted)
    return isAll && pods.every(isReady) && pods.map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort()
  })
}

test('a restored controller adopts what runs', { skip: whyNoDockerd() }, async (t) => {
  const fleet = await joinedFleet(t, { names })
  const { controller, folder, docker } = fleet
  const { dataDir } = controller
  const containers = async () =>
    (await docker.docker.listContainers({ all: true }))
      .map(({ Id, Created, State }) => `${Id} ${Created} ${State}`)
      .sort()
  const agents = await fleet.startReady()
  await controller.kubectlWith(manifests(), 'create', '-f', '-')
  const first = await complete(controller)
  t.equal((await controller.command('backup', folder, '--data-dir', dataDir)).code, 0)
  const backup = join(folder, (await readdir(folder)).find((one) => one.endsWith('.backup')) ?? 'none')
  // kubectl would wait for the pod that replaces one of a StatefulSet, if it is there before kubectl's watch is.
  await controller.kubectl('delete', 'pods', '--all', '--wait=false')
  const second = await complete(controller)
  t.same(
    second.filter((pod) => first.includes(pod)),
    [],
    'no pod of the backup is left',
  )
  const running = await containers()

  controller.program.kill('SIGKILL')
  await controller.program.ended
  await rm(join(dataDir, 'controller.pid'), { force: true })
  const restored = await controller.command('restore', backup, '--data-dir', dataDir, '--replace')
  t.equal(restored.code, 0, restored.stderr)
  // One node is late: the other one alone does not show what runs.
  const [, late] = agents
  await late?.stop()
  const again = await fleet.controllerAgain()
  await again.program.logged('Workloads wait for the checkpoints of nodes')
  const sent = async () => (await again.command('checkpoints', '--data-dir', dataDir)).stdout
  await eventually('one node has sent its checkpoint', async () => /1 of 2 nodes are done.*pi-2/s.test(await sent()))
  t.same(
    (await podsOf(again)).filter(({ metadata: { name, uid } }) => ![...first, ...second].includes(`${name} ${uid}`)),
    [],
    'nothing was created in the place of what the late node runs',
  )
  await fleet.startReady('pi-2')
  // Its status comes beside its checkpoint: until that is there, its pods of the backup are Ready as they were then.
  await eventually('both have sent it', async () => /2 of 2 nodes are done/.test(await sent()))
  t.same(await complete(again), second, 'the pods that ran are there, and those of the backup are not')
  t.same(await containers(), running, 'in the same containers')
  t.match(await again.kubectl('get', 'job', 'work', '-o', 'jsonpath={.status.active}'), '1')
  for (const app of apps) {
    const owned = await again.kubectl(
      'get',
      'pods',
      '-l',
      `app=${app}`,
      '-o',
      'jsonpath={.items[*].metadata.ownerReferences[0].name}',
    )
    t.match(owned, new RegExp(`^${app}`), `${app} has its pods`)
  }

  await t.test('a StatefulSet waits until no checkpoint is accepted any more', async (t) => {
    await again.kubectl('delete', 'pod', 'db-1', '--timeout=80s')
    await eventually('an Event gives the reason', async () =>
      /Warning +AcceptsCheckpoints .*StatefulSets wait/.test(await again.kubectl('describe', 'sts', 'db')),
    )
    t.match(await again.tryKubectl('get', 'pod', 'db-1'), { code: 1 })
    t.equal((await again.command('checkpoints', 'close', '--data-dir', dataDir)).code, 0)
    await complete(again)
  })
})
