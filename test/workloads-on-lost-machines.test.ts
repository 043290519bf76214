/** Deployments and StatefulSets on two machines, of which one loses its connection, then its power; then the controller is away. */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import tap, { test } from 'tap'
import type { Pod } from '../api/pod.ts'
import { image } from './support/pods.ts'
import { type Program, startProgram } from './support/program.ts'
import { overlaps, type Run, recordedPod, runsIn, uptimeS } from './support/run-records.ts'
import { twoMachines, whyNoTwoMachines } from './support/two-machines.ts'
import { eventually } from './support/wait.ts'

tap.setTimeout(600_000)

const graceS = 10
const replicas = 3

function manifests(records: string): string {
  const tolerations = ['not-ready', 'unreachable'].map((key) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 1,
  }))
  const of = (kind: string, name: string, spec: object, pod: object = {}) => {
    const labels = { app: name }
    const template = { metadata: { labels }, spec: { ...recordedPod(records, image), tolerations, ...pod } }
    return {
      apiVersion: 'apps/v1',
      kind,
      metadata: { name },
      spec: { selector: { matchLabels: labels }, template, ...spec },
    }
  }
  const prefer = (name: string) => ({
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 100,
          preference: { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [name] }] },
        },
      ],
    },
  })
  const items = [
    of('Deployment', 'web', { replicas }, { affinity: prefer('pi-1') }),
    of('StatefulSet', 'db', { replicas: 1, serviceName: 'db' }, { affinity: prefer('pi-1') }),
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}

test('workloads outlive their machines', { skip: whyNoTwoMachines() }, async (t) => {
  const fleet = await twoMachines(t, {
    controller: { nodeMonitorPeriod: '1s', nodeMonitorGracePeriod: `${graceS}s`, nodeConnectionLossDebounce: '1s' },
    agents: { nodeLeaseDurationSeconds: 8 },
  })
  let { controller } = fleet
  const { network, first } = fleet
  const records = join(fleet.folder, 'records')
  await runsIn(records)
  const pods = async (app: string): Promise<readonly Pod[]> =>
    JSON.parse(await controller.kubectl('get', 'pods', '-l', `app=${app}`, '-o', 'json')).items
  const runsOf = async (app: string) => (await runsIn(records)).filter(({ pod }) => pod.startsWith(`${app}-`))
  const still = async (run: Run) => {
    const now = (await runsIn(records)).find((one) => one.run === run.run)
    return now !== undefined && (await uptimeS()) - now.lastS < 1 ? now : undefined
  }
  const runningNow = async (app: string) => {
    const runs = await Promise.all((await runsOf(app)).map(still))
    return runs.flatMap((run) => run ?? [])
  }
  const isLeaving = ({ metadata }: Pod) => metadata.deletionTimestamp !== undefined
  const unknown = () => controller.kubectl('wait', '--for=condition=Ready=Unknown', 'node/pi-1', '--timeout=60s')
  const served = (app: string, on: string, count: number) =>
    eventually(`${count} pods of ${app} are Ready on ${on}`, async () => {
      const ready = (await pods(app)).filter(
        (pod) =>
          !isLeaving(pod) &&
          pod.spec.nodeName === on &&
          pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
      )
      return ready.length === count && ready
    })

  await controller.kubectlWith(manifests(records), 'create', '-f', '-')
  await served('web', 'pi-1', replicas)
  const [db] = await served('db', 'pi-1', 1)
  const watch = watchPods(controller.kubeconfig, (end) => t.teardown(end))

  await t.test('a lost link: the pod of a StatefulSet runs on, and none is created in its place', async (t) => {
    const before = await eventually('db-0 runs', async () => (await runningNow('db'))[0])
    await network.cut()
    await unknown()
    await served('web', 'pi-2', replicas)
    await eventually('db-0 is asked to leave', async () => (await pods('db')).every(isLeaving))
    t.same(
      (await pods('db')).map(({ metadata }) => metadata.uid),
      [db?.metadata.uid],
    )
    await eventually('its container runs on behind the cut line', () => still(before))
    t.equal((await runsOf('db')).length, 1)
    await network.restore()
    await eventually('it is replaced', async () => {
      const [pod] = await pods('db')
      return pod !== undefined && pod.metadata.uid !== db?.metadata.uid
    })
    await controller.nodesReady('pi-1')
    await eventually('it runs once', async () => (await runningNow('db')).length === 1)
    t.same(
      overlaps(await runsOf('db'), ({ pod }) => pod),
      [],
      'never twice',
    )
    await eventually(
      'the pods that were replaced meanwhile are ended',
      async () => (await runningNow('web')).length === replicas,
    )
  })

  await t.test('a machine is killed: its pods run on the other one, and its return starts none again', async (t) => {
    await controller.kubectl('cordon', 'pi-2')
    // kubectl would wait for the pod that replaces one of a StatefulSet, if it is there before kubectl's watch is.
    await controller.kubectl('delete', 'pods', '--all', '--wait=false')
    await eventually(
      'the pods of before are gone',
      async () => ![...(await pods('web')), ...(await pods('db'))].some(isLeaving),
    )
    await served('web', 'pi-1', replicas)
    const [lost] = await served('db', 'pi-1', 1)
    await controller.kubectl('uncordon', 'pi-2')
    await first.cutPower()
    await unknown()
    await served('web', 'pi-2', replicas)
    await eventually('db-0 is asked to leave', async () => (await pods('db')).every(isLeaving))
    t.same(
      (await pods('db')).map(({ metadata }) => metadata.uid),
      [lost?.metadata.uid],
      'it may run',
    )
    await eventually('the pods of web run', async () => (await runningNow('web')).length === replicas)

    await controller.kubectl('taint', 'node', 'pi-1', 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute')
    const [moved] = await served('db', 'pi-2', 1)
    t.not(moved?.metadata.uid, lost?.metadata.uid, 'declared out of service, it is not waited for')
    t.same((await pods('web')).length, replicas)

    const returnS = await uptimeS()
    await first.start()
    await controller.kubectl('taint', 'node', 'pi-1', 'node.kubernetes.io/out-of-service-')
    await controller.nodesReady('pi-1')
    await eventually(
      'what it ran is gone',
      async () => (await first.docker.docker.listContainers({ all: true })).length === 0,
    )
    const again = (await runsIn(records)).filter(({ firstS, uid }) => firstS > returnS && uid === lost?.metadata.uid)
    t.same(again, [], 'the pod that was released is not started again')
    t.same(
      overlaps(await runsOf('db'), ({ pod }) => pod),
      [],
    )
    t.same(
      overlaps(await runsIn(records), ({ uid }) => uid),
      [],
    )
  })

  await t.test('the controller is killed, and away for longer than all tolerations: nothing changes', async (t) => {
    const uids = async () => [...(await pods('web')), ...(await pods('db'))].map(({ metadata }) => metadata.uid).sort()
    const [before, runs] = [await uids(), (await runsIn(records)).length]
    controller.program.kill('SIGKILL')
    await controller.program.ended
    await delay(1.5 * graceS * 1000)
    controller = await fleet.controllerAgain()
    await controller.nodesReady('pi-1', 'pi-2')
    await delay(1.5 * graceS * 1000)
    t.same(await uids(), before)
    t.equal((await runsIn(records)).length, runs, 'no container was started')
  })

  t.ok(
    mostAtOnce(watch) <= replicas,
    `the API never showed more than ${replicas} pods of web that run and stay: ${mostAtOnce(watch)}`,
  )
})

const template = `{{printf "{\\"level\\":\\"info\\",\\"message\\":\\"pod\\",\\"type\\":%q,\\"uid\\":%q,\\"app\\":%q,\\"phase\\":%q" .type .object.metadata.uid .object.metadata.labels.app .object.status.phase}}{{if .object.metadata.deletionTimestamp}},"leaves":true{{end}}}{{"\\n"}}`

function watchPods(kubeconfig: string, teardown: (end: () => Promise<unknown>) => void): Program {
  const args = ['get', 'pods', '--watch', '--output-watch-events', '-o', `go-template=${template}`]
  return startProgram(['kubectl', '--kubeconfig', kubeconfig, ...args], teardown)
}

/** Most pods of web that ran and were not leaving at once, after each event. */
function mostAtOnce({ lines }: Program): number {
  const running = new Set<unknown>()
  let most = 0
  for (const { type, uid, app, phase, leaves } of lines) {
    if (app !== 'web') continue
    if (type !== 'DELETED' && phase === 'Running' && leaves !== true) running.add(uid)
    else running.delete(uid)
    most = Math.max(most, running.size)
  }
  return most
}
