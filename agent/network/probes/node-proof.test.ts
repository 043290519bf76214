import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { type Test, test } from 'tap'
import { openAuthority } from '../../../certs/authority.ts'
import { issueAdmin, issueNode } from '../../../certs/issue.ts'
import { temporaryFolder } from '../../../certs/testing/openssl.ts'
import { prover } from './node-proof.ts'
import { datagramBytes, nonceBytes, readChallenge, readProof, writeChallenge, writeProof } from './probe-message.ts'

const nowMs = Date.parse('2026-01-01T00:00:00Z')

async function fleet(t: Test) {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const authority = await openAuthority(folder.path, nowMs)
  const ca = authority.certificate
  return {
    authority,
    ca,
    node: (nodeName: string, lifeMs?: number) =>
      prover(
        (
          (credentials) => () =>
            credentials
        )({ ca, ...issueNode(authority, { nodeName, nowMs, ...(lifeMs && { lifeMs }) }) }),
      ),
  }
}
const challenge = (address = '192.168.1.2') => ({ nonce: randomBytes(nonceBytes), address })

test('a node proves an address with its certificate, in one packet that is no longer than the challenge', async (t) => {
  const { node } = await fleet(t)
  const [one, two] = [node('pi-1'), node(`${'long.'.repeat(40)}name`)]
  const asked = challenge()
  const sent = readChallenge(writeChallenge(asked))
  t.same(sent, asked)
  const message = writeProof(two.prove(asked))
  t.ok(message !== undefined && message.length <= datagramBytes, `${message?.length} bytes`)
  const proof = message && readProof(message)
  t.equal(proof && one.proven(asked, proof), `${'long.'.repeat(40)}name`)
})

test('a certificate that has ended proves it too: the clock of a machine may be years off', async (t) => {
  const { node } = await fleet(t)
  const asked = challenge()
  t.equal(node('pi-1').proven(asked, node('pi-2', 1_000).prove(asked)), 'pi-2')
})

test('a proof is good for its challenge and its address only', async (t) => {
  const { node } = await fleet(t)
  const [one, two] = [node('pi-1'), node('pi-2')]
  const asked = challenge()
  const proof = two.prove(asked)
  t.equal(one.proven({ ...asked, nonce: randomBytes(nonceBytes) }, proof), undefined)
  t.equal(one.proven({ ...asked, address: '192.168.1.3' }, proof), undefined)
})

test('nothing but a node of the fleet proves an address', async (t) => {
  const { node, authority, ca } = await fleet(t)
  const stranger = (await fleet(t)).node('pi-2')
  const asked = challenge()
  const one = node('pi-1')
  t.equal(one.proven(asked, stranger.prove(asked)), undefined, 'the certificate of another fleet')
  const admin = issueAdmin(authority, { nowMs })
  const person = prover(
    (
      (credentials) => () =>
        credentials
    )({ ca, ...admin }),
  )
  t.equal(one.proven(asked, person.prove(asked)), undefined, 'the certificate of a person')
  const { certificate } = node('pi-2').prove(asked)
  t.equal(one.proven(asked, { ...stranger.prove(asked), certificate }), undefined, 'a certificate without its key')
  t.equal(
    one.proven(asked, { nonce: asked.nonce, certificate: Buffer.from('x'), signature: Buffer.alloc(0) }),
    undefined,
  )
})

test('a renewed certificate is used, and an authority that is new is trusted', async (t) => {
  const [before, after] = [await fleet(t), await fleet(t)]
  const old = { ca: before.ca, ...issueNode(before.authority, { nodeName: 'pi-1', nowMs }) }
  const both = { ca: `${after.ca}${before.ca}`, ...issueNode(after.authority, { nodeName: 'pi-1', nowMs }) }
  let current = old
  const one = prover(() => current)
  const asked = challenge()
  t.equal(one.proven(asked, after.node('pi-2').prove(asked)), undefined)
  current = both
  t.equal(one.proven(asked, after.node('pi-2').prove(asked)), 'pi-2')
  t.equal(one.proven(asked, before.node('pi-3').prove(asked)), 'pi-3')
  t.equal(after.node('pi-2').proven(asked, one.prove(asked)), 'pi-1')
})

test('other kinds of keys prove as well, and a proof that is longer than a challenge is not sent', async (t) => {
  const asked = challenge()
  t.equal(writeProof({ nonce: asked.nonce, signature: Buffer.alloc(512), certificate: Buffer.alloc(900) }), undefined)
  const { authority, ca } = await fleet(t)
  const { certificate } = issueNode(authority, { nodeName: 'pi-1', nowMs })
  const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const one = prover(
    (
      (credentials) => () =>
        credentials
    )({ ca, certificate, key }),
  )
  t.equal(one.prove(asked).signature.length, 64)
  t.equal(createPrivateKey(key).asymmetricKeyType, 'ed25519')
})

test('whatever arrives is read or dropped, and never thrown over', async (t) => {
  const { node } = await fleet(t)
  const one = node('pi-1')
  const asked = challenge()
  const messages = [writeChallenge(asked), writeProof(node('pi-2').prove(asked)) ?? Buffer.alloc(0)]
  for (const message of messages) {
    for (let length = 0; length < message.length; length += 7) {
      const cut = message.subarray(0, length)
      t.equal(readChallenge(cut), undefined)
      const proof = readProof(cut)
      if (proof !== undefined) one.proven(asked, proof)
    }
    for (let index = 0; index < message.length; index += 3) {
      const changed = Buffer.from(message)
      changed.writeUInt8(255 - changed.readUInt8(index), index)
      const proof = readProof(changed)
      const isSame = proof?.nonce.equals(asked.nonce) === true && one.proven(asked, proof) === 'pi-2'
      t.notOk(isSame && index >= 28, `byte ${index}`)
      readChallenge(changed)
    }
  }
})
