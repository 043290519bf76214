import { test } from 'tap'
import { initialUpdateState } from './update-state.ts'
import { updateStatusText } from './update-status.ts'

const base = { version: '1.0.0', sequence: 10 }
const release = (version: string, sequence: number) => ({ version, sequence, digest: version })

test('without an update the version of the package is the committed one', async (t) => {
  t.equal(
    updateStatusText(initialUpdateState, base),
    ['package     1.0.0', 'committed   1.0.0 (of the package)', 'on trial    none', 'last trial  none', ''].join('\n'),
  )
})

test('the status names what runs, what is on trial, how the last trial ended and what was rejected', async (t) => {
  const text = updateStatusText(
    {
      ...initialUpdateState,
      committed: release('1.1.0', 11),
      trial: { ...release('1.3.0', 13), attemptsLeft: 2, wasConnected: true, containers: [], epoch: '' },
      last: { version: '1.2.0', outcome: 'RolledBack', reason: '3 starts failed' },
      rejected: [{ version: '1.2.0', digest: 'x', reason: '3 starts failed' }],
    },
    base,
  )
  t.equal(
    text,
    [
      'package     1.0.0',
      'committed   1.1.0',
      'on trial    1.3.0, 2 starts left',
      'last trial  1.2.0: RolledBack (3 starts failed)',
      'rejected    1.2.0: 3 starts failed',
      '',
    ].join('\n'),
  )
})

test('a package that is newer than the committed version runs', async (t) => {
  const text = updateStatusText({ ...initialUpdateState, committed: release('0.9.0', 9) }, base)
  t.match(text, /committed +1\.0\.0 \(of the package\)/)
})
