import { test } from 'tap'
import { decodeOrders } from './received-orders.ts'

const pool = '11111111-1111-4111-8111-111111111111'
const order = {
  kind: 'trash',
  volume: 'pvc-1',
  uid: 'u-1',
  pool,
  folder: 'default_a_pvc-1',
  claim: 'default/a',
  claimUID: 'c',
}
const head = { epoch: 'e', version: 1, store: 's' }

test('orders are used as they were sent', async (t) => {
  const decoded = decodeOrders({ ...head, orders: [order] })
  t.match(decoded, { ok: true, value: { message: { ...head, orders: [order] }, problems: [] } })
  t.match(decodeOrders({ ...head, orders: 'all' }), { ok: false })
  t.match(decodeOrders({ ...head, store: undefined, orders: [] }), { ok: false })
})

test('what could name another folder than one of the pool is left out', async (t) => {
  const wrong = [
    ...['', '.', '..', '.bramble', '../x', 'a/b', '/', 'a\0b', 'x'.repeat(256)].map((folder) => ({ folder })),
    ...['', '../x', 'a/b', 'x'.repeat(129)].map((uid) => ({ uid })),
    ...['', '../../etc', pool.slice(1)].map((id) => ({ pool: id })),
    { kind: 'erase' },
    { kind: 1 },
    { claim: 'x'.repeat(513) },
  ]
  const decoded = decodeOrders({ ...head, orders: [...wrong.map((part) => ({ ...order, ...part })), order] })
  t.match(decoded, { ok: true, value: { message: { orders: [order] } } })
  if (!decoded.ok) return
  t.equal(decoded.value.message.orders.length, 1)
  t.equal(decoded.value.problems.length, wrong.length)
})

test('a message has at most as many orders as a node reports', async (t) => {
  const decoded = decodeOrders({
    ...head,
    orders: Array.from({ length: 1000 }, (_, index) => ({ ...order, uid: `u${index}` })),
  })
  t.equal(decoded.ok && decoded.value.message.orders.length, 256)
})

test('an order for a move is used with a move whose id and round can be in a file name, and not without', async (t) => {
  const move = { id: '0123abcd', round: 1 }
  const kinds = ['send', 'hold', 'release', 'receive', 'keep', 'remove']
  const usable = (part: object) => {
    const decoded = decodeOrders({ ...head, orders: [{ ...order, ...part }] })
    return decoded.ok && decoded.value.message.orders.length === 1
  }
  for (const kind of kinds) {
    t.ok(usable({ kind, move }))
    t.notOk(usable({ kind }))
    for (const wrong of [{ id: '../../x' }, { id: '0123ABCD' }, { id: '0123abcd0' }, { round: 0 }, { round: 1.5 }])
      t.notOk(usable({ kind, move: { ...move, ...wrong } }), JSON.stringify(wrong))
  }
  t.notOk(usable({ kind: 'format', move }))
})

test('an order for a share names a folder below it', async (t) => {
  const share = { kind: 'nfs', server: 'nas', path: '/export' }
  const onShare = { ...order, kind: 'share-trash', pool: '', folder: 'default/a', share }
  const right = [onShare, { ...onShare, kind: 'share-delete' }]
  const wrong = [
    ...['', '..', 'a/../b', '/a', 'a/', '.bramble/volumes', 'a/.b', 'x/'.repeat(300)].map((folder) => ({ folder })),
    ...[{ kind: 'trash' }, { pool }, { share: undefined }, { share: { ...share, kind: 'ftp' } }],
  ]
  const decoded = decodeOrders({ ...head, orders: [...wrong.map((part) => ({ ...onShare, ...part })), ...right] })
  t.match(decoded, { ok: true, value: { message: { orders: right } } })
  t.equal(decoded.ok && decoded.value.problems.length, wrong.length)
})
