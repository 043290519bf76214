import { test } from 'tap'
import type { NodeClaim, NodeCsiDriver } from '../../../api/storage/node-claim.ts'
import { aPod } from '../../../api/testing/builders.ts'
import { fakeClock } from '../../../daemon/testing/fake-clock.ts'
import { callsDriver, driverTokens, tokenAttributes } from './driver-tokens.ts'
import { republishLoop } from './republish-loop.ts'
import { tokenId, tokenNeed, tokenNeeds } from './token-needs.ts'

const vault: NodeCsiDriver = { name: 'vault.example.com', modes: ['Ephemeral'], tokens: [{ audience: 'vault' }] }
const disk = { driver: 'disk.example.com', handle: 'h', tokens: [{ audience: '', expirationSeconds: 600 }] }
const claim = (more: object = {}): NodeClaim => ({
  ...{ namespace: 'default', name: 'data', uid: 'u' },
  volume: { name: 'pv', uid: 'uid-pv', source: 'other', csi: { ...disk, ...more } },
})
const inline = { name: 'secrets', csi: { driver: 'vault.example.com' } }
const data = { name: 'data', persistentVolumeClaim: { claimName: 'data' } }
const plain = { name: 'plain', emptyDir: {} }
const volumeMounts = ['secrets', 'data', 'plain'].map((name) => ({ name, mountPath: `/${name}` }))
const pod = aPod({ uid: 'p', containers: [{ name: 'main', volumeMounts }], spec: { volumes: [inline, data, plain] } })

test('a pod needs the tokens that the drivers of its volumes ask for', async (t) => {
  const sources = { claims: [claim()], csiDrivers: [vault] }
  t.same(driverTokens(pod, inline, sources), [{ audience: 'vault' }])
  t.same(driverTokens(pod, data, sources), [{ audience: '', expirationSeconds: 600 }])
  t.same(driverTokens(pod, plain, sources), [])
  t.same(driverTokens(pod, data, {}), [], 'its claim was not sent')
  const needs = tokenNeeds(pod, (one, volume) => driverTokens(one, volume, sources))
  t.same(
    [...needs.values()],
    [
      { audience: 'vault', expirationSeconds: 3600 },
      { audience: '', expirationSeconds: 600 },
    ],
  )
})

test('the driver receives its tokens as Kubernetes writes them', async (t) => {
  const token = `h.${Buffer.from(JSON.stringify({ exp: 1_767_225_600 })).toString('base64url')}.s`
  const asked = [{ audience: 'vault' }]
  const id = tokenId(tokenNeed({ audience: 'vault' }))
  t.same(tokenAttributes(asked, new Map([[id, { value: token }]])), {
    texts: {
      'csi.storage.k8s.io/serviceAccount.tokens': JSON.stringify({
        vault: { token, expirationTimestamp: '2026-01-01T00:00:00Z' },
      }),
    },
  })
  t.same(tokenAttributes(undefined, new Map()), { texts: {} })
  t.same(tokenAttributes(asked), { missing: 'failed to fetch token: it was not requested' })
  t.same(tokenAttributes(asked, new Map([[id, { missing: 'refused' }]])), { missing: 'refused' })
})

test('once a minute the pods are synced whose drivers mount their volumes again, and no others', async (t) => {
  t.equal(callsDriver(pod, { claims: [claim()], csiDrivers: [vault] }), false)
  t.equal(callsDriver(pod, { csiDrivers: [{ ...vault, republish: true }] }), true)
  const wanted = {
    all: new Map([
      ['p', pod],
      ['q', aPod({ uid: 'q' })],
    ]),
    desired: { claims: [claim({ republish: true })] },
  }
  const added: (readonly string[])[] = []
  const clock = fakeClock()
  const loop = republishLoop({ wanted, workers: { add: (uids) => void added.push(uids) }, clock }, { everyMs: 60_000 })
  const stop = new AbortController()
  const running = loop.run(stop.signal)
  await clock.advance(121_000)
  t.same(added, [['p'], ['p']])
  wanted.desired = { claims: [claim()] }
  await clock.advance(60_000)
  t.equal(added.length, 2)
  stop.abort()
  await running
})
