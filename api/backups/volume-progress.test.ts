import { test } from 'tap'
import type { FleetVolume } from '../storage/fleet-volumes.ts'
import { volumeProgress } from './volume-progress.ts'

const row: FleetVolume = { claim: 'default/db', volume: 'pv', state: 'Bound', requestedBytes: 2 ** 30, pods: [] }
const mib = 2 ** 20

test('what is being done with a volume is one sentence, with a part where it is known', async (t) => {
  const cases: readonly [Partial<FleetVolume>, string, number?][] = [
    [{ move: { to: 'pi-2', phase: 'waiting' } }, 'The move to pi-2 waits for the nodes'],
    [
      { move: { to: 'pi-2', phase: 'copy', bytes: 200 * mib, copiedBytes: 50 * mib } },
      'The move to pi-2 copies, pods run: 50 MiB of 200 MiB',
      0.25,
    ],
    // More than was measured before: pods write on.
    [
      { move: { to: 'pi-2', phase: 'copy', bytes: 10 * mib, copiedBytes: 20 * mib } },
      'The move to pi-2 copies, pods run: 20 MiB of 10 MiB',
      1,
    ],
    [
      { move: { to: 'pi-2', phase: 'copy', bytes: 0, copiedBytes: 0 } },
      'The move to pi-2 copies, pods run: 0 B of 0 B',
    ],
    [
      { move: { to: 'pi-2', phase: 'delta', bytes: 200 * mib, copiedBytes: 12 * mib } },
      'The move to pi-2 copies what has changed, and compares: 12 MiB',
    ],
    [{ move: { to: 'pi-2', phase: 'hold', copiedBytes: 5 } }, 'The move to pi-2 stops the pods'],
    [
      { move: { to: 'pi-2', phase: 'rollback', why: 'pi-2 is full' } },
      'The move to pi-2 removes the copy: the data stays where it was: pi-2 is full',
    ],
    [{ backup: { phase: 'waiting' } }, 'The backup waits for the nodes, or for another backup'],
    [
      { backup: { phase: 'write', to: 'pv/nas', mode: 'live', bytes: 90 * mib, copiedBytes: 12 * mib } },
      'The backup to pv/nas writes: 12 MiB, compressed, of 90 MiB',
    ],
    [{ backup: { phase: 'end', to: 'pv/nas', copiedBytes: 1 } }, 'The backup to pv/nas lets the pods go on'],
    [{ backup: { phase: 'of a later version' } }, 'The backup of a later version'],
    [{ restore: { from: 'pi-2:/mnt', name: 'b-1' } }, 'The restore of b-1 begins'],
    [
      { restore: { from: 'pi-2:/mnt', name: 'b-1', copiedBytes: 3 * mib } },
      'The restore of b-1 writes: 3.0 MiB, compressed',
    ],
    [
      { restore: { from: 'x', name: 'b-1', copiedBytes: 3, why: 'the disk is full' } },
      'The restore of b-1 is tried again: the disk is full',
    ],
  ]
  for (const [more, text, part] of cases)
    t.same(volumeProgress({ ...row, ...more }), { text, ...(part !== undefined && { part }) })
  t.equal(volumeProgress(row), undefined)
})
