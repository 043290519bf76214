import { test } from 'tap'
import { shutdownEnding } from '../../../api/node/node-shutdown.ts'
import type { PodStatus } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { aContainer } from '../../testing/builders.ts'
import type { PodPlan, PodStep } from '../plan/pod-steps.ts'
import { newRecord } from '../record/pod-record.ts'
import { cutShort, isGone, nextAction, type RoundFacts, startsContainers, stopsSandbox } from './next-action.ts'

const pod = aPod({ name: 'web', containers: [{ name: 'main', image: 'app:1' }] })
const leaving = aPod({ name: 'web', metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })
const failed: PodStatus = { phase: 'Failed', reason: 'Evicted' }
const stopped: PodStatus = { phase: 'Failed', ...shutdownEnding }
const nothingToDo: PodPlan = { steps: [], waiting: new Map(), againInMs: undefined }
const remove: PodStep = { step: 'remove', target: aContainer() }

function next(over: Partial<RoundFacts> = {}) {
  return nextAction({
    ...{ pod, record: newRecord, runs: true, plan: nothingToDo, leftMs: undefined, unknownMs: 0 },
    ...over,
  })
}

test('a pod is gone when nothing desires it and none of its containers is left', async (t) => {
  t.ok(isGone(undefined, []))
  t.ok(isGone(leaving, []))
  t.notOk(isGone(pod, []), 'its containers are started')
  t.notOk(isGone(undefined, [aContainer()]))
})

test('a deadline comes before the steps, and these before everything else', async (t) => {
  const plan = { ...nothingToDo, steps: [remove] }
  t.same(next({ plan, leftMs: 0 }), { action: 'endForDeadline' })
  t.same(next({ plan, leftMs: 1 }), { action: 'steps', steps: [remove] })
})

test('a settled pod is synced again at the earliest time', async (t) => {
  const againInMs = (over: Partial<RoundFacts>) => {
    const action = next(over)
    return action.action === 'settle' ? action.againInMs : action.action
  }
  t.equal(againInMs({}), undefined, 'only when something changes')
  t.equal(againInMs({ plan: { ...nothingToDo, againInMs: 50 }, leftMs: 70, unknownMs: 60 }), 50)
  t.equal(againInMs({ plan: { ...nothingToDo, againInMs: 80 }, leftMs: 70 }), 70)
  t.equal(againInMs({ leftMs: 70, unknownMs: 60 }), 60)
})

test('a pod that has ended gives up its volumes, or only their mounts if it comes back after the boot', async (t) => {
  const clears = (ended: PodStatus | undefined, over: Partial<RoundFacts> = {}, cleared = false) => {
    const record = { ...newRecord, ...(ended && { ended }), ...(cleared && { cleared: true as const }) }
    const action = next({ runs: false, record, ...over })
    return action.action === 'settle' ? action.clears : action.action
  }
  t.equal(clears(undefined), 'nothing', 'it has not ended')
  t.equal(clears(failed, { runs: true }), 'nothing', 'its containers are still stopping')
  t.equal(clears(failed), 'volumes')
  t.equal(clears(failed, {}, true), 'volumes', 'also what was mounted since')
  t.equal(clears(stopped), 'mounts')
  t.equal(clears(stopped, {}, true), 'nothing')
  t.equal(clears(failed, { pod: undefined }), 'nothing', 'its containers go first')
})

test('containers that a shutdown cut short begin again where only failures are restarted', async (t) => {
  const ofPolicy = (restartPolicy: string) => ({ ...pod, spec: { ...pod.spec, restartPolicy } })
  const record = { ...newRecord, interruptedAt: '2026-01-01T10:00:00Z' }
  const at = (time: string, over = {}) =>
    aContainer({
      ...{ state: 'exited', startedAt: '2026-01-01T09:00:00Z', finishedAt: `2026-01-01T${time}Z` },
      ...over,
    })
  const cut = at('10:00:05')
  t.same(cutShort(ofPolicy('OnFailure'), record, [cut]), [cut])
  t.same(cutShort(ofPolicy('Always'), record, [cut]), [], 'it is restarted in any case')
  t.same(cutShort(ofPolicy('Never'), record, [cut]), [])
  t.same(cutShort(ofPolicy('OnFailure'), newRecord, [cut]), [], 'no shutdown')
  t.same(cutShort(ofPolicy('OnFailure'), { ...record, ended: failed }, [cut]), [], 'the pod has ended')
  t.same(cutShort(undefined, record, [cut]), [])
  const others = [
    at('09:59:59'),
    at('10:00:05', { exitCode: 1 }),
    at('10:00:05', { state: 'running' }),
    at('10:00:05', { startedAt: '2026-01-01T10:00:02Z' }),
    at('10:00:05', { identity: { containerName: '' } }),
  ]
  t.same(cutShort(ofPolicy('OnFailure'), record, others), [])
  const within = at('10:00:05', { startedAt: '2026-01-01T10:00:00.900Z' })
  t.same(cutShort(ofPolicy('OnFailure'), record, [within]), [within], 'the time of the shutdown is in whole seconds')
})

test('steps that start a container, and those that stop the sandbox, are recognised', async (t) => {
  const stop = (containerName: string): PodStep => ({
    ...{ step: 'stop', graceSeconds: 5, why: 'it leaves' },
    target: aContainer({ identity: { containerName } }),
  })
  t.same([remove, stop('')].map(stopsSandbox), [false, true])
  t.notOk(stopsSandbox(stop('main')))
  t.notOk(startsContainers([remove, stop('main')]))
  const [container] = pod.spec.containers
  if (container === undefined) throw new Error('the pod has no container')
  const start: PodStep = {
    ...{ step: 'startContainer', container, attempt: 0, imagePulled: true, previous: undefined },
    sandbox: aContainer({ identity: { containerName: '' } }),
  }
  t.ok(startsContainers([start]))
})
