import { test } from 'tap'
import {
  adoptContainer,
  afterAnswer,
  newProbe,
  type ProbedContainer,
  type ProbeKind,
  type ProbeState,
  probeKinds,
  probeTurn,
  rulesOf,
} from './probe-worker.ts'

const up: ProbedContainer = {
  id: 'one',
  running: true,
  runsForMs: 60_000,
  started: true,
  mayRestart: true,
  podLeaving: false,
}

function answered(kind: ProbeKind, answers: readonly ('success' | 'failure' | 'unknown')[], probe = {}): ProbeState {
  const begun = adoptContainer(newProbe(kind), 'one')
  return answers.reduce((state, answer) => afterAnswer(state, 'one', answer, rulesOf(probe)), begun)
}

function turn(kind: ProbeKind, over: Partial<ProbedContainer> = {}, probe = {}, state = newProbe(kind)) {
  return probeTurn(state, { ...up, ...over }, rulesOf(probe)).turn
}

test('left out means the kubelet’s defaults', async (t) => {
  const defaults = { initialDelayMs: 0, timeoutMs: 1000, periodMs: 10_000, successThreshold: 1, failureThreshold: 3 }
  t.same(rulesOf({}), defaults)
  const probe = {
    initialDelaySeconds: 1,
    timeoutSeconds: 2,
    periodSeconds: 3,
    successThreshold: 4,
    failureThreshold: 5,
  }
  t.same(rulesOf(probe), {
    initialDelayMs: 1000,
    timeoutMs: 2000,
    periodMs: 3000,
    successThreshold: 4,
    failureThreshold: 5,
  })
})

test('before its first probe a container is live, not ready and not started', async (t) => {
  t.same(
    probeKinds.map((kind) => [kind, newProbe(kind).result, newProbe(kind).onHold]),
    [
      ['startup', 'unknown', false],
      ['liveness', 'success', false],
      ['readiness', 'failure', false],
    ],
  )
  t.equal(answered('liveness', []).result, 'success')
  t.equal(answered('readiness', []).result, 'failure')
  t.equal(answered('startup', []).result, 'unknown')
})

test('only so many equal answers in a row change anything', async (t) => {
  t.equal(answered('readiness', ['success']).result, 'success')
  t.equal(answered('readiness', ['success'], { successThreshold: 2 }).result, 'failure')
  t.equal(answered('readiness', ['success', 'success'], { successThreshold: 2 }).result, 'success')
  t.equal(answered('readiness', ['success', 'failure', 'failure']).result, 'success')
  t.equal(answered('readiness', ['success', 'failure', 'failure', 'success', 'failure']).result, 'success')
  t.equal(answered('readiness', ['success', 'failure', 'failure', 'failure']).result, 'failure')
  t.equal(answered('readiness', ['failure', 'failure', 'unknown', 'failure']).run, 3, 'no answer counts for nothing')
})

test('after a liveness failure, or any end of the start, nothing is asked before there is another container', async (t) => {
  const dead = answered('liveness', ['failure', 'failure', 'failure'])
  t.match(dead, { result: 'failure', onHold: true, run: 0 })
  t.equal(turn('liveness', {}, {}, dead), 'wait')
  t.equal(turn('liveness', { id: 'two' }, {}, dead), 'ask')
  t.equal(adoptContainer(dead, 'two').result, 'success')
  t.match(answered('startup', ['success']), { result: 'success', onHold: true })
  t.match(answered('liveness', ['success']), { onHold: false })
  const short = adoptContainer(answered('liveness', ['failure', 'failure']), 'two')
  t.equal(afterAnswer(short, 'two', 'failure', rulesOf({})).result, 'failure', 'a short run is carried over')
  t.equal(afterAnswer(short, 'one', 'failure', rulesOf({})).result, 'success', 'a late answer is not')
})

test('a probe has its time', async (t) => {
  t.equal(turn('liveness', { runsForMs: 4_000 }, { initialDelaySeconds: 5 }), 'wait')
  t.equal(turn('liveness', { runsForMs: 5_000 }, { initialDelaySeconds: 5 }), 'ask')
  t.equal(turn('liveness', { started: false }), 'wait', 'the start comes first')
  t.equal(turn('readiness', { started: false }), 'wait')
  t.equal(turn('startup', { started: false }), 'ask')
  t.equal(turn('startup'), 'wait')
})

test('one that does not run is not asked', async (t) => {
  const ended = probeTurn(newProbe('readiness'), { ...up, running: false }, rulesOf({}))
  t.match(ended, { turn: 'wait', state: { result: 'failure' } })
  t.equal(turn('readiness', { running: false, mayRestart: false }), 'end')
})

test('a pod that goes may become unready, and is not killed for its probes', async (t) => {
  const leaving = { ...up, podLeaving: true }
  const dying = answered('liveness', ['failure', 'failure'])
  t.match(probeTurn(dying, leaving, rulesOf({})), { turn: 'end', state: { result: 'success' } })
  t.equal(turn('readiness', leaving), 'ask')
})
