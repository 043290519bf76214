import { test } from 'tap'
import type { Fact } from '../story/facts.ts'
import { acrossRestores } from './across-restores.ts'
import { answeredIsStored } from './answered-is-stored.ts'
import { deletedStaysDeleted } from './deleted-stays-deleted.ts'
import { type Judge, judgeOf } from './invariant.ts'

const object = { resource: 'pods', namespace: 'default', name: 'web' }
const restored: Fact = { kind: 'restored', rows: [], version: 1_000 }
const judged = (judge: Judge, ...facts: readonly Fact[]) =>
  facts.map((fact) => judge({ ...fact, atMs: 0 }) !== undefined)

test('an answer from before the restore that arrives late is not lost, and one from after it may be', (t) => {
  const judge = judgeOf(acrossRestores(answeredIsStored))
  const late: Fact = { kind: 'answered', ...object, version: 7, uid: 'a' }
  t.same(judged(judge, late, restored, late), [true, false, false])
  t.same(judged(judge, { ...late, version: 1_007 }), [true])
  t.end()
})

test('what was deleted since the backup may come back, and what was deleted since the restore may not', (t) => {
  const judge = judgeOf(acrossRestores(deletedStaysDeleted))
  const deleted: Fact = { kind: 'watched', ...object, version: 1_100, type: 'DELETED', uid: 'a' }
  const listed: Fact = { kind: 'listed', resource: 'pods', version: 1_200, uids: ['a'] }
  t.same(judged(judge, { ...deleted, version: 5 }, restored, listed, deleted, listed), [
    false,
    false,
    false,
    false,
    true,
  ])
  t.end()
})
