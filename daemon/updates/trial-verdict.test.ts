import { test } from 'tap'
import { judgeTrial, type TrialHistory, type TrialLook, type TrialRules } from './trial-verdict.ts'

const rules: TrialRules = {
  trialMs: 600_000,
  deafMs: 300_000,
  longestMs: 3_600_000,
  wasConnected: true,
  containers: ['a', 'b', 'c'],
  epoch: 'boot 1',
}
const alone: TrialRules = { ...rules, wasConnected: false }
const well: Omit<TrialLook, 'nowMs'> = {
  unit: { state: 'running', invocation: '1', exitStatus: 0 },
  containers: new Set(['a', 'b', 'c']),
  epoch: 'boot 1',
  controller: 'sees',
}
const unit = (state: TrialLook['unit']['state'], invocation = '1', exitStatus = 0) => ({
  unit: { state, invocation, exitStatus },
})

/** Looks every 10 s, the n-th of them as `at` gives it; the verdict, and after how many seconds. */
function trial(at: (second: number) => Partial<TrialLook>, given = rules): string {
  let history: TrialHistory | undefined
  for (let second = 0; second <= 7200; second += 10) {
    const judged = judgeTrial(history, { ...well, ...at(second), nowMs: 5_000_000 + second * 1000 }, given)
    history = judged.history
    if (judged.verdict !== undefined) return `${judged.verdict.outcome} after ${second} s: ${judged.verdict.reason}`
  }
  return 'no verdict'
}

const cases: { readonly [sentence: string]: readonly [string, RegExp] } = {
  'a version that is healthy for the time of the trial is committed': [trial(() => ({})), /^commit after 600 s/],
  'the time begins with the start': [trial((s) => (s < 100 ? unit('starting') : {})), /^commit after 700 s/],
  'the time begins again with another start': [
    trial((s) => unit('running', s < 500 ? '1' : '2')),
    /^commit after 1100 s/,
  ],
  'a version that is not started again is rejected at once': [
    trial((s) => (s < 50 ? {} : unit('failed', '1', 78))),
    /^reject after 50 s: It ended with status 78/,
  ],
  'a version that most containers did not survive is rejected at once': [
    trial((s) => (s < 20 ? {} : { containers: new Set(['c', 'd', 'e']) })),
    /^reject after 20 s: 2 of 3 containers/,
  ],
  'containers that a boot or a start of Docker has ended are not lost by the version': [
    trial((s) => (s < 20 ? {} : { containers: new Set(['d']), epoch: 'boot 2' })),
    /^commit after 600 s/,
  ],
  'a pod that was deleted meanwhile is not a fault': [
    trial(() => ({ containers: new Set(['b', 'c']) })),
    /^commit after 600 s/,
  ],
  'a version that the controller misses is rejected': [
    trial((s) => (s < 100 ? {} : { controller: 'misses' })),
    /^reject after 400 s: .* no lease of it for 300 s/,
  ],
  'a version that the controller misses for a while is committed': [
    trial((s) => (s < 280 ? { controller: 'misses' } : {})),
    /^commit after 600 s/,
  ],
  'a controller that is away for a while proves nothing': [
    trial((s) => (s < 900 ? { controller: 'away' } : {})),
    /^commit after 900 s/,
  ],
  'a controller that stays away ends the trial without a verdict': [
    trial(() => ({ controller: 'away' })),
    /^inconclusive after 3600 s: The controller is away/,
  ],
  'a version that starts and starts is rejected in the end': [
    trial((s) => unit('starting', String(s))),
    /^reject after 3600 s: It was not healthy/,
  ],
  'a version that starts again and again is rejected in the end, also without a controller': [
    trial(
      (s) => ({ ...unit(s % 300 < 200 ? 'running' : 'starting', String(Math.floor(s / 300))), controller: 'away' }),
      alone,
    ),
    /^reject after 3600 s/,
  ],
  'a machine without a controller commits alone': [trial(() => ({ controller: 'away' }), alone), /^commit after 600 s/],
  'a machine that had no lease before needs none': [
    trial(() => ({ controller: 'misses' }), alone),
    /^commit after 600 s/,
  ],
  'Docker that does not answer proves nothing': [
    trial((s) => (s < 800 ? { containers: undefined } : {})),
    /^commit after 800 s/,
  ],
  'Docker that stays away ends the trial without a verdict': [
    trial(() => ({ containers: undefined })),
    /^inconclusive after 3600 s: Docker/,
  ],
  'an agent that was stopped by hand is not judged': [
    trial(() => unit('stopped')),
    /^inconclusive after 3600 s: It was stopped/,
  ],
  'a machine without containers has none to lose': [
    trial(() => ({ containers: new Set() }), { ...rules, containers: [] }),
    /^commit/,
  ],
}
for (const [sentence, [found, expected]] of Object.entries(cases)) {
  test(sentence, async (t) => {
    t.match(found, expected)
  })
}
