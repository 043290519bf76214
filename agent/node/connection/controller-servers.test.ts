import { test } from 'tap'
import { haveOthersToLead, keptServers, publishedServers, serverChoice } from './controller-servers.ts'

const joined = { apiUrl: 'https://a:6443', mqttUrl: 'mqtts://a:8883' }

test('a machine tries the addresses that were published last, and then those with which it joined', async (t) => {
  t.same(keptServers(joined), { apiServers: ['https://a:6443'], mqttServers: ['mqtts://a:8883'] })
  const published = { apiServers: ['https://b:6443', 'https://a:6443'], mqttServers: ['mqtts://b:8883'] }
  t.same(keptServers({ ...joined, ...published }), {
    apiServers: ['https://b:6443', 'https://a:6443'],
    mqttServers: ['mqtts://b:8883', 'mqtts://a:8883'],
  })
})

test('another controller may lead where several are published, not where one has two addresses', async (t) => {
  const published = { mqttServers: ['mqtts://b:8883'] }
  t.equal(keptServers({ ...joined, ...published }).mqttServers.length, 2)
  t.notOk(haveOthersToLead({ ...joined, ...published }))
  t.notOk(haveOthersToLead({}))
  t.ok(haveOthersToLead({ ...joined, mqttServers: ['mqtts://a:8883', 'mqtts://b:8883'] }))
})

test('of what is published only addresses are kept, and not too many', async (t) => {
  const apiServers = ['https://b:6443', 'http://c:1', 'https://', 'x', 'https://d/path', `https://${'e'.repeat(400)}`]
  t.same(publishedServers({ apiServers, mqttServers: ['mqtts://b:8883', 'mqtts://b:8883', 'mqtt://c:1883'] }), {
    apiServers: ['https://b:6443'],
    mqttServers: ['mqtts://b:8883'],
  })
  t.same(publishedServers({}), { apiServers: [], mqttServers: [] })
  const many = Array.from({ length: 100 }, (_, i) => `https://c${i}:6443`)
  t.equal(publishedServers({ apiServers: many }).apiServers.length, 16)
})

test('each server is tried once before a round is over', async (t) => {
  const choice = serverChoice(() => ['a', 'b', 'c'])
  t.equal(choice.current(), 'a')
  t.same([choice.failed(), choice.current()], [false, 'b'])
  t.same([choice.failed(), choice.current()], [false, 'c'])
  t.same([choice.failed(), choice.current()], [true, 'a'])
  t.same([choice.failed(), choice.current()], [false, 'b'])
  choice.worked()
  t.same([choice.failed(), choice.failed(), choice.failed()], [false, false, true], 'what works begins a new round')
})

test('requests that fail at the same time lead to the next server, and not past it', async (t) => {
  const choice = serverChoice(() => ['a', 'b'])
  t.same([choice.failed('a'), choice.failed('a'), choice.current()], [false, false, 'b'])
  t.same([choice.failed('b'), choice.current()], [true, 'a'])
})

test('one server alone ends each round', async (t) => {
  const choice = serverChoice(() => ['a'])
  t.same([choice.failed(), choice.current(), choice.isOneOfSeveral()], [true, 'a', false])
})

test('the list may change while one of it is in use', async (t) => {
  let servers = ['a', 'b']
  const choice = serverChoice(() => servers)
  choice.failed()
  t.equal(choice.current(), 'b')
  servers = ['c', 'b']
  t.equal(choice.current(), 'b', 'it is still there')
  servers = ['c', 'd']
  t.equal(choice.current(), 'c', 'it is gone')
})
