import { test } from 'tap'
import type { BackupMode, VolumeBackup } from '../../../../api/backups/volume-backup.ts'
import { seededRandom } from '../../../../daemon/testing/seeded-random.ts'
import { type BackupStepFacts, planBackup, wasInterrupted } from './backup-plan.ts'

const id = '0123abcd'
const made = { name: 'b', bytes: 1, mark: 'm' }
const [running, done] = [{ state: 'running' as const }, { state: 'done' as const }]
const failed = { state: 'failed' as const, why: 'no space' }
const held = { id, isFenced: true, isReleased: false, isDiscarded: false }
const released = { id, isFenced: false, isReleased: true, isDiscarded: false }
const plan = (mode: BackupMode, phase: VolumeBackup['phase'], facts: Partial<BackupStepFacts> = {}) =>
  planBackup({
    backup: { id, phase, mode },
    ...{ cancelled: undefined, source: undefined, before: undefined, after: undefined, copy: undefined, isOwn: true },
    ...facts,
  })

test('pods are brought to rest by the mode, then the data is written', async (t) => {
  t.same(plan('live', 'begin'), { step: 'enter', phase: 'write' })
  t.same(plan('stopped', 'begin'), { step: 'wait', do: 'stop pods' })
  t.same(plan('stopped', 'begin', { source: { ...held, id: '00000000' } }), { step: 'wait', do: 'stop pods' })
  t.same(plan('stopped', 'begin', { source: held }), { step: 'enter', phase: 'write' })
  t.same(plan('hooks', 'begin'), { step: 'wait', do: 'before' })
  t.same(plan('hooks', 'begin', { before: running }), { step: 'wait', do: 'before' })
  t.same(plan('hooks', 'begin', { before: done }), { step: 'enter', phase: 'write' })
  t.same(plan('hooks', 'begin', { before: failed }), { step: 'enter', phase: 'end', why: 'no space' })
})

test('the end of the copy is that of the backup', async (t) => {
  for (const mode of ['live', 'hooks', 'stopped'] as const) {
    const source = { source: held }
    t.same(plan(mode, 'write', source), { step: 'wait', do: 'copy' }, mode)
    t.same(plan(mode, 'write', { ...source, copy: running }), { step: 'wait', do: 'copy' })
    t.same(plan(mode, 'write', { ...source, copy: { ...done, made } }), { step: 'enter', phase: 'end', made })
    t.same(plan(mode, 'write', { ...source, copy: failed }), { step: 'enter', phase: 'end', why: 'no space' })
  }
})

test('pods go on in any case before it is over', async (t) => {
  t.same(plan('live', 'end'), { step: 'finish' })
  t.same(plan('stopped', 'end'), { step: 'wait' })
  t.same(plan('stopped', 'end', { source: held }), { step: 'wait' })
  t.same(plan('stopped', 'end', { source: released }), { step: 'finish' })
  t.same(plan('hooks', 'end'), { step: 'wait', do: 'after' })
  t.same(plan('hooks', 'end', { after: running }), { step: 'wait', do: 'after' })
  for (const after of [done, failed]) t.same(plan('hooks', 'end', { after }), { step: 'finish' })
})

test('it ends early when the claim goes, the node loses its hold, or the process that froze pods is another one', async (t) => {
  for (const phase of ['begin', 'write'] as const) {
    for (const mode of ['live', 'hooks', 'stopped'] as const)
      t.same(plan(mode, phase, { cancelled: 'gone', copy: { ...done, made } }), {
        step: 'enter',
        phase: 'end',
        why: 'gone',
      })
    t.same(plan('hooks', phase, { isOwn: false }), { step: 'enter', phase: 'end', why: wasInterrupted })
    t.same(plan('live', 'write', { isOwn: false }), { step: 'wait', do: 'copy' })
  }
  t.match(plan('stopped', 'write', { source: released, copy: { ...done, made } }), {
    why: /did not keep the pods stopped/,
  })
  t.same(
    plan('stopped', 'write', { copy: { ...done, made } }),
    { step: 'enter', phase: 'end', made },
    'the node has not reported yet',
  )
})

/** A volume whose pod writes while it may; what is in memory of the controller is lost with it. */
function world(random: () => number, mode: BackupMode) {
  let state: Pick<VolumeBackup, 'id' | 'phase' | 'mode' | 'why' | 'made'> | undefined = { id, phase: 'begin', mode }
  const disk = { isHeld: false, isPodRunning: true, isFrozen: false, stored: false }
  let memory = fresh(true)
  function fresh(isOwn: boolean) {
    return { isOwn, before: undefined, after: undefined, copy: undefined, source: undefined } as Pick<
      BackupStepFacts,
      'isOwn' | 'before' | 'after' | 'copy' | 'source'
    >
  }
  const set = (more: Partial<typeof memory>) => {
    memory = { ...memory, ...more }
  }
  const outcomes: boolean[] = []
  const steps = {
    controller() {
      if (state === undefined) return
      const step = planBackup({ backup: state, cancelled: undefined, ...memory })
      if (step.step === 'finish') {
        if (disk.isHeld || disk.isFrozen) throw new Error('pods cannot go on')
        outcomes.push(state.made !== undefined)
        state = undefined
      } else if (step.step === 'enter') state = { ...state, ...step }
      else if (step.do === 'stop pods') disk.isPodRunning = false
      else if (step.do !== undefined && memory[step.do] === undefined) set({ [step.do]: running })
    },
    node() {
      if (state?.mode !== 'stopped') return
      const isHold = state.phase !== 'end'
      if (isHold && !disk.isPodRunning) disk.isHeld = true
      if (!isHold) disk.isHeld = false
      set({ source: { ...(isHold ? held : released), isFenced: disk.isHeld } })
    },
    startPod() {
      if (!disk.isHeld) disk.isPodRunning = true
    },
    jobs() {
      if (memory.before?.state === 'running') {
        disk.isFrozen = true
        set({ before: random() < 0.2 ? failed : done })
      }
      if (memory.after?.state === 'running') {
        disk.isFrozen = false
        set({ after: done })
      }
      if (memory.copy?.state !== 'running' || state?.phase !== 'write') return
      if (mode === 'stopped' && disk.isPodRunning) throw new Error('a pod writes to what is read')
      if (mode === 'hooks' && !disk.isFrozen) throw new Error('it was not frozen')
      disk.stored = true
      set({ copy: random() < 0.2 ? failed : { ...done, made } })
    },
    kill() {
      if (random() < 0.3) memory = fresh(false)
    },
  }
  return { steps, outcomes, isOver: () => state === undefined }
}

test('a kill at any step ends with pods that run, and a backup that no pod has changed', async (t) => {
  const counts = { made: 0, not: 0 }
  for (const mode of ['live', 'hooks', 'stopped'] as const) {
    for (let seed = 1; seed <= 300; seed++) {
      const random = seededRandom(seed)
      const { steps, outcomes, isOver } = world(random, mode)
      const all = Object.values(steps)
      for (let count = 0; count < 2_000 && !isOver(); count++) all[Math.floor(random() * all.length)]?.()
      if (!isOver()) t.fail(`${mode} ${seed} does not end`)
      for (const isMade of outcomes) counts[isMade ? 'made' : 'not'] += 1
    }
  }
  t.ok(counts.made > 100 && counts.not > 50, JSON.stringify(counts))
})
