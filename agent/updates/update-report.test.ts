import { test } from 'tap'
import { initialUpdateState, type UpdateState } from '../../daemon/updates/update-state.ts'
import { type UpdateReportFacts, updateCondition, updateReport } from './update-report.ts'

const base = { version: '1.0.0', sequence: 10 }
const wanted = { version: '1.2.0', sequence: 12, digest: 'w' }
const seen = { wasConnected: true, containers: [], epoch: '' }
const trial = (attemptsLeft: number) => ({ version: '1.2.0', sequence: 12, digest: 't', attemptsLeft, ...seen })
const last = (outcome: string) => ({ version: '1.2.0', outcome, reason: 'Docker does not answer' })
const rejected = [{ version: '1.2.0', digest: 't', reason: '3 starts failed' }]

type Row = {
  readonly state?: Partial<UpdateState>
  readonly facts?: Partial<UpdateReportFacts>
  readonly outcome: string | undefined
  readonly status: string
  readonly message: string
}
const rows: { readonly [sentence: string]: Row } = {
  'without a release that is wanted the committed version is reported': {
    ...{ facts: { wanted: undefined }, outcome: undefined, status: 'False', message: 'version 1.0.0 is committed' },
  },
  'a release that is wanted waits': {
    ...{ outcome: 'waiting', status: 'False', message: 'version 1.0.0 runs, and 1.2.0 waits' },
  },
  'the reason why it waits is named': {
    facts: { note: { sequence: 12, outcome: 'waiting', reason: 'the window opens at 02:00 UTC' } },
    ...{ outcome: 'waiting', status: 'False' },
    message: 'version 1.0.0 runs, and 1.2.0 waits: the window opens at 02:00 UTC',
  },
  'the reason of another release does not count': {
    facts: { note: { sequence: 11, outcome: 'blocked', reason: 'the disk is full' } },
    ...{ outcome: 'waiting', status: 'False', message: 'version 1.0.0 runs, and 1.2.0 waits' },
  },
  'a release that is blocked has failed': {
    facts: { note: { sequence: 12, outcome: 'blocked', reason: 'the disk is full' } },
    ...{ outcome: 'blocked', status: 'True' },
    message: 'version 1.2.0 cannot be installed, and 1.0.0 runs: the disk is full',
  },
  'a release that has not started yet is not on trial': {
    state: { trial: trial(3) },
    ...{ outcome: 'waiting', status: 'False' },
    message: 'version 1.0.0 runs, and 1.2.0 waits: It is installed, and starts with the next start of the agent',
  },
  'a release on trial is reported as one': {
    state: { trial: trial(2) },
    ...{ outcome: 'trial', status: 'False', message: 'version 1.2.0 is on trial; 1.0.0 is committed' },
  },
  'one that somebody installed by hand is reported, too': {
    ...{ state: { trial: trial(1) }, facts: { wanted: undefined }, outcome: 'trial', status: 'False' },
    message: 'version 1.2.0 is on trial; 1.0.0 is committed',
  },
  'a release that was rejected has failed': {
    ...{ state: { rejected, last: last('RolledBack') }, outcome: 'rolledBack', status: 'True' },
    message: 'version 1.2.0 was taken back, and 1.0.0 runs: 3 starts failed',
  },
  'a trial without a verdict is tried again': {
    ...{ state: { last: last('Inconclusive') }, outcome: 'waiting', status: 'False' },
    message: 'version 1.0.0 runs, and 1.2.0 waits: Inconclusive: Docker does not answer',
  },
  'a committed release is reported as one': {
    state: { committed: { version: '1.2.0', sequence: 12, digest: 't' }, last: last('Committed') },
    ...{ outcome: 'committed', status: 'False', message: 'version 1.2.0 is committed' },
  },
  'a package that is newer than what is wanted will do': {
    facts: { base: { version: '2.0.0', sequence: 20 } },
    ...{ outcome: 'committed', status: 'False', message: 'version 2.0.0 is committed' },
  },
}
for (const [sentence, { state, facts, outcome, status, message }] of Object.entries(rows)) {
  test(sentence, async (t) => {
    const report = updateReport({ base, wanted, note: undefined, ...facts, state: { ...initialUpdateState, ...state } })
    t.equal(report.release?.outcome, outcome)
    t.match(updateCondition(report), { type: 'AgentUpdateFailed', status, message })
  })
}

test('a long reason is cut: the report must fit into an annotation', async (t) => {
  const note = { sequence: 12, outcome: 'blocked', reason: 'x'.repeat(10_000) } as const
  const { release } = updateReport({ state: initialUpdateState, base, wanted, note })
  t.equal(release?.reason?.length, 300)
})
