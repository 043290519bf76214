import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { noEtcd as skip } from '../../../test/support/etcd.ts'
import { etcdUnderTest, rawClient } from '../../testing/etcd-under-test.ts'
import type { EtcdClient } from './etcd-client.ts'
import { methods } from './etcd-messages.ts'
import { etcdVersions } from './etcd-versions.ts'

const { url } = await etcdUnderTest()
const { url: smallUrl } = await etcdUnderTest('--max-txn-ops', '32')
const names = (count: number) => Array.from({ length: count }, (_, index) => `/versions/${index}`)

/** Counts the calls, and holds each until it is let go. */
function slowly(client: EtcdClient) {
  const held: (() => void)[] = []
  const call: EtcdClient['call'] = async (method, request) => {
    await new Promise<void>((resolve) => held.push(resolve))
    return client.call(method, request)
  }
  return { call, held }
}

test('keys asked for while a question is under way are one question together', { skip }, async (t) => {
  const client = await rawClient(url)
  t.teardown(() => client.close())
  const { call, held } = slowly(client)
  const version = etcdVersions({ call })
  const expected: number[] = []
  for (const name of names(3)) {
    const put = { put: { key: Buffer.from(name), value: Buffer.from('a') } }
    expected.push((await client.call(methods.txn, { success: [put] })).header?.revision ?? -1)
  }
  const asked = names(300).map((name) => version(Buffer.from(name)))
  let calls = 0
  const all = Promise.all(asked).then((versions) => ({ versions }))
  for (let answer: unknown; answer === undefined; answer = await Promise.race([all, turn()])) {
    for (const release of held.splice(0)) {
      calls += 1
      release()
    }
  }
  t.same((await all).versions, [...expected, ...names(297).map(() => 0)])
  t.equal(calls, 4, 'the first alone, and the others by a hundred')
})

test('an etcd that takes fewer operations in a transaction is asked for fewer keys at a time', { skip }, async (t) => {
  const client = await rawClient(smallUrl)
  t.teardown(() => client.close())
  const put = { put: { key: Buffer.from('/versions/7'), value: Buffer.from('a') } }
  const { header } = await client.call(methods.txn, { success: [put] })
  let calls = 0
  const call: EtcdClient['call'] = (method, request) => {
    calls += 1
    return client.call(method, request)
  }
  const version = etcdVersions({ call })
  const expected = names(300).map((name) => (name === '/versions/7' ? header?.revision : 0))
  const ask = () => Promise.all(names(300).map((name) => version(Buffer.from(name))))
  t.same(await ask(), expected)
  calls = 0
  t.same(await ask(), expected)
  t.ok(calls <= 13, `by 25, and the first perhaps alone: none is refused any more, in ${calls} calls`)
})

test('each of a question that fails gets the reason, and the next ones are asked again', async (t) => {
  const reason = new Error('no leader')
  let calls = 0
  const call = async () => {
    calls += 1
    throw reason
  }
  const version = etcdVersions({ call })
  const asked = names(3).map((name) => version(Buffer.from(name)).catch((error: unknown) => error))
  t.same(await Promise.all(asked), [reason, reason, reason])
  t.equal(calls, 2)
  await t.rejects(version(Buffer.from('/versions/4')), reason)
  t.equal(calls, 3)
})

test('no key waits for more than one call before its own, while etcd does not answer', async (t) => {
  const failing: (() => void)[] = []
  const call = () =>
    new Promise<never>((_, reject) => {
      failing.push(() => reject(new Error('Deadline exceeded')))
    })
  const version = etcdVersions({ call })
  const asked = Promise.allSettled(names(1000).map((name) => version(Buffer.from(name))))
  for (const fail of failing.splice(0)) fail()
  await turn()
  t.equal(failing.length, 10)
  for (const fail of failing) fail()
  t.ok((await asked).every(({ status }) => status === 'rejected'))
})
