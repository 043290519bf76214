import { test } from 'tap'
import { householdBroker } from './household-broker.ts'

test('a server has the usual port of its protocol, and no credentials in its URL', async (t) => {
  const read = (server: string) => householdBroker({ server }, 'x', [])
  t.match(read('mqtt://broker'), { isEncrypted: false, host: 'broker', port: 1883 })
  t.match(read('mqtts://broker/'), { isEncrypted: true, host: 'broker', port: 8883 })
  t.match(read('mqtts://[::1]:99'), { host: '::1', port: 99 })
  for (const server of ['mqtt://u@b', 'mqtt://:p@b', 'ws://b', 'mqtt://b#c']) t.equal(read(server), undefined, server)
})

test('without a server there must be nothing else', async (t) => {
  const problems: string[] = []
  t.equal(householdBroker({}, 'x', problems), undefined)
  t.same(problems, [])
  t.equal(householdBroker({ username: 'me' }, 'x', problems), undefined)
  t.same(problems, ['x.server: name the broker that the other fields are for'])
})
