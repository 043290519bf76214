import { test } from 'tap'
import { aPod } from '../../../api/testing/builders.ts'
import { aStoredClaim, aStoredVolume, claimRefTo } from '../../testing/volume-objects.ts'
import { type Reservation, reservations } from './reservations.ts'

const reservation = (name: string, over: Partial<Reservation> = {}): Reservation => ({
  ...{ key: `default/${name}`, pod: aPod({ name }), nodeName: 'a', versions: new Map(), beganMs: 0, untilMs: 600 },
  volumes: { bindings: [], provisions: [aStoredClaim(`of-${name}`)] },
  ...over,
})

function reservedFor(...all: readonly Reservation[]) {
  const reserved = reservations()
  for (const one of all) reserved.add(one)
  const take = (nowMs = 0, most = 100) => reserved.take(nowMs, most).map(({ key }) => key.slice('default/'.length))
  return { reserved, take }
}

test('a pod is looked at once after it was reserved, and then after each change of its own claims and volumes', async (t) => {
  const volume = aStoredVolume('disk')
  const bindings = [{ claim: aStoredClaim('data'), volume }]
  const { reserved, take } = reservedFor(
    reservation('web'),
    reservation('db', { volumes: { bindings, provisions: [] } }),
  )
  t.same(take(), ['web', 'db'])
  t.same(take(), [])
  reserved.claimChanged(aStoredClaim('of-web'))
  t.same(take(), ['web'])
  reserved.claimChanged(aStoredClaim('of-another'))
  t.same(take(), [])
  reserved.volumeChanged(volume)
  t.same(take(), ['db'])
  reserved.volumeChanged(aStoredVolume('made', { spec: { claimRef: claimRefTo('of-web') } }))
  t.same(take(), ['web'])
  reserved.nodeChanged('a')
  t.same(take(), ['web', 'db'])
  reserved.nodeChanged('b')
  t.same(take(), [])
})

test('a pod is looked at when it has waited for too long, and never again after its removal', async (t) => {
  const { reserved, take } = reservedFor(reservation('web'), reservation('db', { untilMs: 900 }))
  t.equal(reserved.nextMs(5), 5, 'it is to be looked at now')
  take()
  t.equal(reserved.nextMs(5), 600)
  t.same(take(599), [])
  t.same(take(600), ['web'])
  t.ok(reserved.remove('default/web'))
  t.notOk(reserved.remove('default/web'))
  reserved.claimChanged(aStoredClaim('of-web'))
  t.same(take(800), [])
  t.same(take(900), ['db'])
})

test('many pods that change together are looked at in parts', async (t) => {
  const { reserved, take } = reservedFor(...['a', 'b', 'c'].map((name) => reservation(name)))
  t.same(take(0, 2), ['a', 'b'])
  t.equal(reserved.nextMs(7), 7)
  t.same(take(0, 2), ['c'])
  t.equal(reserved.nextMs(7), 600)
})
