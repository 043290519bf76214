import { test } from 'tap'
import type { FleetPool, FleetVolume, FleetVolumes } from '../../../api/storage/fleet-volumes.ts'
import { cancelMove, moveEstimate, moveVolume } from './move-command.ts'

const row: FleetVolume = {
  ...{ claim: 'default/db', volume: 'pvc-1', state: 'Bound', pool: 'a', node: 'pi-1' },
  ...{ requestedBytes: 2 ** 40, usedBytes: 2 ** 30, pods: ['db-0'] },
}
const pools: readonly FleetPool[] = [
  { id: 'a', node: 'pi-1', state: 'Ready', availableBytes: 2 ** 30, volumes: 1 },
  { id: 'b', node: 'pi-2', state: 'Ready', availableBytes: 2 ** 40, volumes: 0 },
]
const fleet = (over: Partial<FleetVolume> = {}): FleetVolumes => ({ pools, volumes: [{ ...row, ...over }], trash: [] })
const wish = { to: 'pi-2', bytesPerSecond: undefined }

/** The fleet as it is at each look; `stopAfter`: the person presses Ctrl-C. */
function watching(states: readonly FleetVolumes[], stopAfter = Number.POSITIVE_INFINITY) {
  const [printed, written, stop] = [[] as string[], [] as unknown[], new AbortController()]
  let looks = 0
  return {
    ...{ printed, written },
    fleet: async () => states[Math.min(looks++, states.length - 1)] ?? fleet(),
    annotate: async (volume: string, annotations: object) => void written.push({ volume, ...annotations }),
    print: (text: string) => void printed.push(text),
    clock: {
      async sleep() {
        if (looks >= stopAfter) stop.abort()
      },
    },
    signal: stop.signal,
  }
}

test('the move is asked for on the volume, and followed until the data is there', async (t) => {
  const at = (phase: string, more: object = {}) => fleet({ move: { to: 'pi-2', phase, ...more } })
  const watch = watching([
    ...[fleet(), at('waiting'), at('copy', { bytes: 2 ** 30, copiedBytes: 2 ** 29 }), at('hold'), at('hold')],
    ...[at('delta', { bytes: 2 ** 30, copiedBytes: 2 ** 20 }), at('place'), fleet({ node: 'pi-2', pool: 'b' })],
  ])
  t.match(await moveVolume('db', wish, watch), /^Moved: the data is on pi-2\. The old copy is in the trash of pi-1\./)
  t.same(watch.written, [{ volume: 'pvc-1', 'bramble.dev/move-to': 'pi-2', 'bramble.dev/move-rate': null }])
  const [estimate, ...progress] = watch.printed
  t.match(
    estimate,
    /^Moving default\/db \(1.*\) from pi-1 to pi-2\. Its pods \(db-0\) run while it is copied, at least 32s/,
  )
  t.equal(progress.length, 5, 'once for each change')
  t.match(progress[1], /^copies, pods run: 512.* of 1/)
})

test('a move that was rolled back fails with its reason', async (t) => {
  const back = fleet({ move: { to: 'pi-2', phase: 'rollback', why: 'no space' } })
  await t.rejects(moveVolume('db', wish, watching([fleet(), back, fleet()])), {
    message: 'Not moved, the data stays on pi-1: no space',
  })
  await t.rejects(moveVolume('db', wish, watching([fleet(), fleet()])), { message: /'kubectl describe pv pvc-1' has/ })
})

test('a person who stops watching does not stop the move, and can cancel it before the data is there', async (t) => {
  const going = fleet({ move: { to: 'pi-2', phase: 'copy' } })
  t.match(
    await moveVolume('db', wish, watching([fleet(), going], 2)),
    /^The move continues\. To cancel it: .* db --cancel/,
  )
  const watch = watching([going])
  t.match(await cancelMove('default/db', watch), /^The move to pi-2 is cancelled/)
  t.same(watch.written, [{ volume: 'pvc-1', 'bramble.dev/move-to': null }])
  await t.rejects(cancelMove('db', watching([fleet()])), { message: /is not being moved/ })
  const there = fleet({ move: { to: 'pi-2', phase: 'clean' } })
  await t.rejects(cancelMove('db', watching([there])), { message: /is on pi-2 already: move it back/ })
})

test('what cannot be moved is refused before anything is written', async (t) => {
  const problem = (over: Partial<FleetVolume>, to = 'pi-2', others = pools) =>
    moveEstimate({ ...row, ...over }, { ...wish, to }, { ...fleet(), pools: others })
  const { pool: _, ...outside } = row
  t.match(moveEstimate(outside, wish, fleet()), { problem: /Only volumes of a pool/ })
  t.match(problem({ state: 'Released' }), { problem: /not bound/ })
  t.match(problem({ node: 'pi-2' }), { problem: /is on pi-2/ })
  t.match(problem({}, 'pi-3'), { problem: /Node pi-3 has no pool/ })
  t.match(problem({ usedBytes: 2 ** 41 }), { problem: /the pool of pi-2 has .* free/ })
  t.match(problem({ move: { to: 'pi-3', phase: 'copy' } }), { problem: /to pi-3 already/ })
  const away = pools.map((pool) => (pool.node === 'pi-1' ? { ...pool, state: 'NodeNotReady' as const } : pool))
  t.match(problem({}, 'pi-2', away), { problem: 'Node pi-1 is not ready' })
  await t.rejects(moveVolume('other', wish, watching([fleet()])), { message: /There is no claim and no volume other/ })
})
