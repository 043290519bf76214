/** Workloads on machines that are rebooted, and whose power is cut: what must run once runs once. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import type { Pod } from '../api/pod.ts'
import { startController, temporaryFolder } from './support/fleet.ts'
import { bootMachine } from './support/machine.ts'
import { machineNetwork } from './support/machine-network.ts'
import { installOnDisk, testPackages } from './support/packaged.ts'
import { overlaps, recordedPod, runsIn, uptimeS } from './support/run-records.ts'
import { eventually } from './support/wait.ts'

const image = 'test/busybox:1'
const names = ['pi-01', 'pi-02']

test('workloads on machines that go down', async (t) => {
  const packages = await testPackages()
  const network = await machineNetwork(t)
  const folder = await temporaryFolder(t)
  const records = join(folder, 'records')
  await mkdir(records)
  const controller = await startController(t, {
    dataDir: join(folder, 'controller'),
    address: network.hostAddress,
    settings: { nodeMonitorPeriod: '1s', nodeMonitorGracePeriod: '10s', nodeConnectionLossDebounce: '1s' },
  })
  const [first] = await Promise.all(
    names.map(async (name) => {
      const binds = [[records, '/root/records']] as const
      const prepare = (disk: string) => installOnDisk(disk, packages.agent)
      const machine = await bootMachine(t, { name, network, binds, prepare })
      await machine.importImage(image)
      const settings = { apiVersion: 'bramble.dev/v1alpha1', kind: 'AgentConfiguration', nodeLeaseDurationSeconds: 8 }
      await machine.write('/etc/bramble/agent.yaml', JSON.stringify(settings))
      await machine.run(`bramble-agent ${(await controller.joinLine()).join(' ')} --no-run`)
      return machine
    }),
  )
  if (first === undefined) throw new Error('There is no machine')
  await controller.nodesReady(...names)
  const { kubectl } = controller
  const pods = async (): Promise<readonly Pod[]> => JSON.parse(await kubectl('get', 'pods', '-o', 'json')).items
  const identities = async () => (await pods()).map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort()
  const restartsOf = ({ status }: Pod) => status?.containerStatuses?.[0]?.restartCount ?? 0
  const allReady = (count: number, restarts = 0) =>
    eventually(`${count} pods are Ready`, async () => {
      const present = await pods()
      const isServing = (pod: Pod) =>
        pod.metadata.deletionTimestamp === undefined &&
        restartsOf(pod) >= restarts &&
        pod.status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true
      return present.length === count && present.every(isServing) && present
    })

  await controller.kubectlWith(manifests(), 'create', '-f', '-')
  for (const { spec } of await allReady(3)) t.equal(spec.nodeName, 'pi-01')

  await t.test('a reboot that the machine announced replaces no pod', async (t) => {
    const before = await identities()
    const created = async () => (await kubectl('get', 'events')).match(/SuccessfulCreate/g)?.length
    const createdBefore = await created()
    await first.reboot()
    await controller.nodesReady('pi-01')
    // Until the agent reports its pods, they may be shown as they were before.
    await allReady(3, 1)
    t.same(await identities(), before, 'the same pods, in new containers: they tolerate an absence of a second')
    t.equal(await created(), createdBefore, 'none was created meanwhile')
    t.same(
      overlaps(await runsIn(records), ({ uid }) => uid),
      [],
    )
  })

  await t.test('a StatefulSet runs one pod of a name over a power cut', async (t) => {
    const uidOf = async () => (await pods()).find(({ metadata }) => metadata.name === 'db-0')?.metadata.uid
    const before = await uidOf()
    await first.cutPower()
    await eventually('the pods of the Deployment run elsewhere', async () => {
      const web = (await pods()).filter(({ metadata }) => metadata.name?.startsWith('web-'))
      return web.filter(({ spec, status }) => spec.nodeName === 'pi-02' && status?.phase === 'Running').length === 2
    })
    t.equal(await uidOf(), before, 'its machine has not confirmed its end')
    const returnS = await uptimeS()
    await first.powerOn()
    await controller.nodesReady('pi-01')
    await allReady(3)
    t.not(await uidOf(), before, 'the new boot shows that it ended: it is created again')
    const runs = (await runsIn(records)).filter(({ pod }) => pod === 'db-0')
    t.same(
      overlaps(runs, ({ pod }) => pod),
      [],
    )
    t.same(
      runs.filter(({ uid, firstS }) => uid === before && firstS > returnS),
      [],
      'the earlier pod is not started again',
    )
    await eventually('it runs', async () =>
      (await runsIn(records)).some(({ uid, pod }) => pod === 'db-0' && uid !== before),
    )
  })
})

function manifests(): string {
  const hostname = (name: string) => [{ key: 'kubernetes.io/hostname', operator: 'In', values: [name] }]
  const preference = { weight: 100, preference: { matchExpressions: hostname('pi-01') } }
  const pod = {
    ...recordedPod('/root/records', image),
    affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [preference] } },
    tolerations: ['not-ready', 'unreachable'].map((key) => ({
      key: `node.kubernetes.io/${key}`,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 1,
    })),
  }
  const of = (kind: string, name: string, spec: object) => {
    const labels = { app: name }
    const template = { metadata: { labels }, spec: pod }
    return {
      apiVersion: 'apps/v1',
      kind,
      metadata: { name },
      spec: { selector: { matchLabels: labels }, template, ...spec },
    }
  }
  const items = [of('Deployment', 'web', { replicas: 2 }), of('StatefulSet', 'db', { replicas: 1, serviceName: 'db' })]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}
