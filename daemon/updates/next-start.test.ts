import { test } from 'tap'
import { nextStart, type StartFacts, type StartPlan } from './next-start.ts'
import { folderOf, initialUpdateState, type Release, trialAttempts, type UpdateState } from './update-state.ts'

const release = (sequence: number): Release => ({
  version: `1.${sequence}.0`,
  sequence,
  digest: `${sequence}`.repeat(64),
})
const base = { version: '1.1.0', sequence: 1 }
const [old, next, later] = [release(2), release(3), release(4)]
const state = (more: Partial<UpdateState> = {}): UpdateState => ({ ...initialUpdateState, highestSequence: 1, ...more })
const onTrial = (attemptsLeft: number, one = next) => ({
  trial: { ...one, attemptsLeft, wasConnected: true, containers: [], epoch: '' },
})
const facts = (more: Partial<StartFacts> = {}): StartFacts => ({
  base,
  folders: new Set([old, next, later].map(folderOf)),
  isSaved: true,
  verdict: undefined,
  ...more,
})
const verdict = (outcome: 'commit' | 'reject' | 'inconclusive', { digest } = next) => ({
  verdict: { digest, outcome, reason: 'it was seen' },
})

type Expected = {
  readonly run?: Release | undefined
  readonly restore?: boolean
  readonly snapshot?: boolean
  readonly left?: number
  readonly committed?: Release
  readonly outcome?: string
  readonly rejected?: boolean
  readonly highest?: number
}
const cases: { readonly [sentence: string]: readonly [UpdateState, StartFacts, Expected] } = {
  'without updates the package runs': [initialUpdateState, facts(), { highest: 1 }],
  'the committed version runs': [state({ committed: old }), facts(), { run: old, committed: old }],
  'the package runs if the folder of the committed version is gone': [
    state({ committed: old }),
    facts({ folders: new Set() }),
    {},
  ],
  'a newer package replaces the committed version': [
    state({ committed: old }),
    facts({ base: { version: '9', sequence: 9 } }),
    { highest: 9 },
  ],
  'a package of the same sequence replaces the committed version': [
    state({ committed: old, highestSequence: 2 }),
    facts({ base: { version: '1.2.0', sequence: 2 } }),
    { highest: 2 },
  ],
  'the first start of a trial saves the state and counts': [
    state({ committed: old, ...onTrial(3) }),
    facts({ isSaved: false }),
    { run: next, snapshot: true, left: 2, committed: old },
  ],
  'a copy of the state that is left from a start that was cut short is replaced': [
    state(onTrial(3)),
    facts(),
    { run: next, snapshot: true, left: 2 },
  ],
  'another start of a trial counts': [state(onTrial(2)), facts(), { run: next, left: 1 }],
  'the last start of a trial counts': [state(onTrial(1)), facts(), { run: next, left: 0 }],
  'a trial without attempts is rolled back and rejected': [
    state({ committed: old, ...onTrial(0) }),
    facts(),
    { run: old, restore: true, committed: old, outcome: 'RolledBack', rejected: true },
  ],
  'a trial above the package alone is rolled back to the package': [
    state(onTrial(0)),
    facts(),
    { restore: true, outcome: 'RolledBack', rejected: true },
  ],
  'a trial that was judged bad is rolled back at once': [
    state(onTrial(2)),
    facts(verdict('reject')),
    { restore: true, outcome: 'RolledBack', rejected: true },
  ],
  'a trial whose state was put back before the power was cut is rejected': [
    state(onTrial(0)),
    facts({ isSaved: false }),
    { outcome: 'RolledBack', rejected: true },
  ],
  'a trial without verdict is rolled back and may be tried again': [
    state({ committed: old, ...onTrial(1) }),
    facts(verdict('inconclusive')),
    { run: old, restore: true, committed: old, outcome: 'Inconclusive' },
  ],
  'a trial whose state was put back as the disk was full may be tried again': [
    state(onTrial(2)),
    facts({ isSaved: false }),
    { outcome: 'Inconclusive' },
  ],
  'a trial that was judged good is committed': [
    state({ committed: old, ...onTrial(2) }),
    facts(verdict('commit')),
    { run: next, committed: next, outcome: 'Committed', highest: 3 },
  ],
  'a trial that was judged good at its last attempt is committed': [
    state(onTrial(0)),
    facts(verdict('commit')),
    { run: next, committed: next, outcome: 'Committed', highest: 3 },
  ],
  'a trial that was never started cannot be good': [
    state(onTrial(3)),
    facts(verdict('commit')),
    { run: next, snapshot: true, left: 2 },
  ],
  'the verdict on another version does not count': [
    state(onTrial(2)),
    facts(verdict('commit', later)),
    { run: next, left: 1 },
  ],
  'a trial whose folder is gone is rolled back': [
    state({ committed: old, ...onTrial(2) }),
    facts({ folders: new Set([folderOf(old)]) }),
    { run: old, restore: true, committed: old, outcome: 'Inconclusive' },
  ],
  'a newer package ends a trial, and keeps what it has written': [
    state({ committed: old, ...onTrial(1) }),
    facts({ base: { version: '9', sequence: 9 } }),
    { outcome: 'Superseded', highest: 9 },
  ],
  'a package between the committed version and the trial is what the trial falls back to': [
    state({ committed: old, ...onTrial(0, later) }),
    facts({ base: { version: '1.3.0', sequence: 3 } }),
    { restore: true, outcome: 'RolledBack', rejected: true, highest: 3 },
  ],
}

for (const [sentence, [before, seen, expected]] of Object.entries(cases)) {
  test(sentence, async (t) => {
    const plan = nextStart(before, seen)
    const { run, restore = false, snapshot = false, left, committed, outcome, rejected = false, highest = 1 } = expected
    t.equal(plan.run && folderOf(plan.run), run && folderOf(run), 'what runs')
    t.same([plan.restore, plan.snapshot], [restore, snapshot], 'what is done before')
    t.equal(plan.state.trial?.attemptsLeft, left)
    t.same(plan.state.committed, committed)
    t.equal(plan.state.last?.outcome, outcome)
    t.equal(plan.state.rejected.length > 0, rejected)
    t.equal(plan.state.highestSequence, highest)
    neverATrialWithoutCount(plan, before) || t.fail('a version on trial is started without a count')
    t.same(plan.fallback, plan.state.committed, 'the fallback is never on trial')
  })
}

test('a trial ends after a few starts, whatever happens between them', async (t) => {
  let now = state({ committed: old, ...onTrial(trialAttempts) })
  const ran: string[] = []
  for (let start = 0; start < 10; start++) {
    const plan = nextStart(now, facts())
    ran.push(plan.run?.version ?? 'base')
    now = plan.state
  }
  t.same(ran, [...Array(trialAttempts).fill(next.version), ...Array(10 - trialAttempts).fill(old.version)])
})

test('of rejected versions the latest are kept', async (t) => {
  let now = state()
  for (let sequence = 2; sequence < 40; sequence++) {
    const one = { ...release(sequence), digest: String(sequence).padStart(64, '0') }
    now = nextStart({ ...now, ...onTrial(0, one) }, facts({ folders: new Set([folderOf(one)]) })).state
  }
  t.equal(now.rejected.length, 16)
  t.equal(now.rejected.at(-1)?.version, '1.39.0')
})

function neverATrialWithoutCount(plan: StartPlan, before: UpdateState): boolean {
  const isTrial = plan.run !== undefined && plan.run.digest === plan.state.trial?.digest
  return !isTrial || (plan.state.trial?.attemptsLeft ?? 9) < (before.trial?.attemptsLeft ?? 0)
}
