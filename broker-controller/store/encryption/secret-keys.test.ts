import { test } from 'tap'
import {
  formatSecretKeys,
  keyIdOf,
  newSecretKey,
  openBody,
  openBytes,
  parseSecretKeys,
  sealBody,
  sealBytes,
  sealedPrefix,
  sealedPrefixLength,
} from './secret-keys.ts'

const object = { namespace: 'default', name: 'db' }
const body = '{"data":{"password":"aHVudGVyMg=="}}'

test('a body is opened with its key under its own name only', async (t) => {
  const [key, other] = [newSecretKey(), newSecretKey()]
  const sealed = sealBody(key, 'secrets', object, body)
  t.match(sealed, /^enc:aesgcm:v1:[0-9a-f]{16}:[A-Za-z0-9+/=]+$/)
  t.notMatch(Buffer.from(sealed.slice(sealedPrefixLength + 1), 'base64').toString('latin1'), 'password')
  t.equal(openBody(key, 'secrets', object, sealed), body)
  t.throws(() => openBody(other, 'secrets', object, sealed))
  t.throws(() => openBody(key, 'secrets', { ...object, name: 'web' }, sealed), 'of another name')
  t.throws(() => openBody(key, 'secrets', { ...object, namespace: 'kube-system' }, sealed), 'of another namespace')
  t.throws(() => openBody(key, 'configmaps', object, sealed), 'of another kind')
  t.throws(() => openBody(key, 'secrets', { namespace: 'defaultd', name: 'b' }, sealed), 'the same letters')
})

test('two writes of one body have different nonces', async (t) => {
  const key = newSecretKey()
  t.not(sealBody(key, 'secrets', object, body), sealBody(key, 'secrets', object, body))
})

test('a change of any byte is found, and so is a body that is cut', async (t) => {
  const { key } = newSecretKey()
  const sealed = sealBytes(key, 'x', Buffer.from('content'))
  t.equal(openBytes(key, 'x', sealed).toString(), 'content')
  for (let at = 0; at < sealed.length; at++) {
    const turned = Buffer.from(sealed)
    turned[at] = (turned[at] ?? 0) ^ 1
    t.throws(() => openBytes(key, 'x', turned), `byte ${at}`)
    t.throws(() => openBytes(key, 'x', sealed.subarray(0, at)), `the first ${at}`)
  }
  t.equal(openBytes(key, 'x', sealBytes(key, 'x', new Uint8Array())).length, 0, 'nothing is content, too')
})

test('the ID of a key is in each body, and is another for another key', async (t) => {
  const [key, other] = [newSecretKey(), newSecretKey()]
  const sealed = sealBody(key, 'secrets', object, body)
  t.equal(keyIdOf(sealed), key.id)
  t.not(key.id, other.id)
  t.equal(sealed.slice(0, sealedPrefixLength), sealedPrefix(key.id))
  t.equal(keyIdOf(body), undefined)
})

test('keys are read from their file as they were written', async (t) => {
  const [first, second] = [newSecretKey(), newSecretKey()]
  const text = formatSecretKeys([first, second])
  t.equal(text, `${first.key.toString('base64')}\n${second.key.toString('base64')}\n`)
  t.same(parseSecretKeys(text), [first, second])
  t.same(parseSecretKeys(text.trimEnd()), [first, second])
})

test('a text that is not a list of keys gives none', async (t) => {
  const line = `${Buffer.alloc(32, 1).toString('base64')}\n`
  t.equal(parseSecretKeys(''), undefined)
  t.equal(parseSecretKeys('\n'), undefined)
  t.equal(parseSecretKeys(`${Buffer.alloc(31, 1).toString('base64')}\n`), undefined)
  t.equal(parseSecretKeys(`${line}x\n`), undefined)
  t.equal(parseSecretKeys(`x${line}`), undefined)
  t.equal(parseSecretKeys(line.repeat(8))?.length, 8)
  t.equal(parseSecretKeys(line.repeat(9)), undefined)
})
