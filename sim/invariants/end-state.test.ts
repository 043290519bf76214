import { test } from 'tap'
import { type EndState, endProblems, type StoredThing } from './end-state.ts'

const leaving = { metadata: { name: 'pv-1', deletionTimestamp: '2026-01-01T00:00:00Z' } }
const failed = (message: string) => ({
  metadata: { name: 'event' },
  reason: 'VolumeFailedDelete',
  message: `node "node-1" keeps the data: ${message}`,
  involvedObject: { name: 'pv-1' },
})

function problems(rows: { readonly [resource: string]: readonly StoredThing[] }, more: Partial<EndState> = {}) {
  return endProblems({ wanted: [], machines: [], stored: (resource) => rows[resource] ?? [], ...more })
}

test('a volume must be gone when it was deleted, unless a newer claim has used its data since a restored backup', async (t) => {
  const used = failed('a pod of the claim default/data has used it since')
  const problem = ['persistentvolumes pv-1 is being deleted']
  const restored = { isRestored: true }
  t.same(problems({ persistentvolumes: [leaving] }), problem)
  t.same(problems({ persistentvolumes: [leaving], events: [used] }), problem, 'without a restore')
  t.same(problems({ persistentvolumes: [leaving], events: [used] }, restored), [])
  t.same(problems({ persistentvolumes: [leaving], events: [failed('a pod has it mounted')] }, restored), problem)
  t.same(problems({ persistentvolumeclaims: [leaving] }, restored), ['persistentvolumeclaims pv-1 is being deleted'])
})
