import { test } from 'tap'
import type { Fact } from '../story/facts.ts'
import { fleetView } from './fleet-view.ts'
import { isBelow, outlookCounter, type Sight } from './outlook.ts'

const stored = (resource: string, name: string, object: object | undefined): Fact => {
  const namespace = resource === 'nodes' ? '' : 'default'
  return { kind: 'stored', resource, namespace, name, version: 1, body: object && JSON.stringify(object) }
}
const meta = (name: string, owner?: { readonly kind: string; readonly name: string; readonly uid: string }) => ({
  ...{ name, namespace: 'default', uid: `uid-${name}` },
  ...(owner && { ownerReferences: [{ apiVersion: 'apps/v1', controller: true, ...owner }] }),
})
const machine = (name: string, ready: 'True' | 'Unknown') =>
  stored('nodes', name, {
    kind: 'Node',
    metadata: { name },
    status: { conditions: [{ type: 'Ready', status: ready }] },
  })
const web = stored('deployments', 'web', { kind: 'Deployment', metadata: meta('web'), spec: { replicas: 1 } })
const set = stored('replicasets', 'web-1', {
  kind: 'ReplicaSet',
  metadata: meta('web-1', { kind: 'Deployment', name: 'web', uid: 'uid-web' }),
  spec: { replicas: 1 },
})
const pod = (name: string, nodeName: string | undefined, conditions: readonly object[], more: object = {}) =>
  stored('pods', name, {
    kind: 'Pod',
    metadata: { ...meta(name, { kind: 'ReplicaSet', name: 'web-1', uid: 'uid-web-1' }), ...more },
    spec: { containers: [], ...(nodeName && { nodeName }) },
    status: { phase: 'Running', conditions },
  })
const ready = { type: 'Ready', status: 'True' }
const evicted = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' }
const container = { node: 'pi-1', pod: 'web-a', podUID: 'uid-web-a', container: 'main', id: 'c1' }

function fleet() {
  const view = fleetView()
  const sight = (): Sight => ({ workloads: view.workloads, pods: view.podsByMachine(), problemsOf: view.problemsOf })
  for (const fact of [machine('pi-1', 'True'), machine('pi-2', 'True'), web, set, pod('web-a', 'pi-1', [ready])])
    view.take(fact)
  view.take({ kind: 'started', ...container })
  const outlook = outlookCounter(['pi-1', 'pi-2'], sight())
  return {
    take: (atMs: number, fact: Fact) => outlook.take(atMs, view.take(fact)),
    end: (atMs: number) => outlook.end(atMs, sight()),
  }
}

test('a pod that moves is shown with its machine, its eviction and the time without it', (t) => {
  const { take, end } = fleet()
  take(1_000, machine('pi-1', 'Unknown'))
  take(1_000, pod('web-a', 'pi-1', []))
  take(301_000, pod('web-a', 'pi-1', [evicted], { deletionTimestamp: 'now' }))
  take(
    301_000,
    pod('web-b', undefined, [{ type: 'PodScheduled', status: 'False', message: '0/2 nodes are available' }]),
  )
  take(302_000, pod('web-b', 'pi-2', []))
  take(310_000, pod('web-b', 'pi-2', [ready]))
  take(400_000, machine('pi-1', 'True'))
  take(401_000, { kind: 'ended', exitCode: 0, ...container })
  take(401_000, stored('pods', 'web-a', undefined))
  const { lines, workloads, machines } = end(500_000)
  t.same(
    lines.map(({ atMs, text }) => `${atMs} ${text}`),
    [
      '1000 machine pi-1: NotReady',
      '1000 Deployment default/web: 0 of 1 ready',
      '301000 pod default/web-a: evicted from pi-1 (its machine is not ready)',
      '301000 pod default/web-b: no machine for it (0/2 nodes are available)',
      '302000 pod default/web-b: placed on pi-2',
      '310000 Deployment default/web: 1 of 1 ready',
      '400000 machine pi-1: Ready',
    ],
  )
  t.match(workloads, [
    {
      ...{ workload: 'Deployment default/web', wanted: 1, readyLeast: 0, readyLeastAtMs: 1_000, readyAtEnd: 1 },
      // The container on the machine that is away runs all the time, and the other one was not started in this test.
      ...{ runningLeast: 0, belowWantedMs: 309_000, placed: 1, problems: [] },
    },
  ])
  t.equal(workloads.length, 1, 'the ReplicaSet is a part of the Deployment')
  t.match(machines, [
    { machine: 'pi-1', podsAtBeginning: 1, podsAtEnd: 0, evicted: 1, notReady: [{ fromMs: 1_000, toMs: 400_000 }] },
    { machine: 'pi-2', podsAtBeginning: 0, podsAtEnd: 1, evicted: 0, notReady: [] },
  ])
  t.end()
})

test('a workload that has too few pods at the end is below wanted, with the reason', (t) => {
  const { take, end } = fleet()
  take(1_000, stored('pods', 'web-a', undefined))
  take(1_000, pod('web-b', undefined, [{ type: 'PodScheduled', status: 'False', message: '0/2 nodes are available' }]))
  const [found] = end(2_000).workloads
  t.match(found, { readyAtEnd: 0, belowWantedMs: 1_000, problems: ['0/2 nodes are available'] })
  t.ok(found !== undefined && isBelow(found))
  t.end()
})

test('a store that is replaced by a backup is shown as the backup has it', (t) => {
  const view = fleetView()
  for (const fact of [machine('pi-1', 'True'), web, set, pod('web-a', 'pi-1', [ready]), pod('web-b', 'pi-1', [ready])])
    view.take(fact)
  const rowOf = (fact: Fact) =>
    fact.kind === 'stored' && fact.body !== undefined ? [{ ...fact, body: fact.body }] : []
  const rows = [pod('web-a', 'pi-1', [ready]), set, web, machine('pi-1', 'True')].flatMap(rowOf)
  view.take({ kind: 'restored', rows, version: 9 })
  t.match(view.workloads, [{ name: 'web', wanted: 1, ready: 1 }])
  t.same([...view.podsByMachine()], [['pi-1', 1]])
  t.end()
})
