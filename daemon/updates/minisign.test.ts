import { generateKeyPairSync } from 'node:crypto'
import { test } from 'tap'
import { checkSignature, readSignatureKey, signatureKeyText, signFile } from './minisign.ts'

/** Made by minisign 0.10 of Debian 12: `minisign -S -H`. */
const theirs = {
  file: Buffer.from('one release\n'),
  key: 'untrusted comment: minisign public key 9931E19E74A81BBB\nRWS7G6h0nuExmZywvXrlziHfqQSfLy+J03F1XILcl5O7OIGNiMUCodRD\n',
  signature: [
    'untrusted comment: signature from minisign secret key',
    'RUS7G6h0nuExmcA154B31taAdcO4lTBY3TlmP3K/QaVLQbquqXdhVb+33i1jI2r2ut2EIDfP9gl9sqLrcZl1Qia2SwXVFbNNfws=',
    'trusted comment: bramble-agent 1.2.3',
    'mWLwF11qsBZ/3Wxvp3cQlKqFNW3PzMFEYWN41GKfaBaeUwLwRzsx1ZHTBc93nbB1YrvYqWWlI41zW0iyvGQLDg==',
    '',
  ].join('\n'),
}

function keyOf(text: string) {
  const key = readSignatureKey(text)
  if (key === undefined) throw new Error('It is a key')
  return key
}

test('a signature of minisign is accepted, with its trusted comment', async (t) => {
  t.equal(checkSignature(theirs.file, theirs.signature, keyOf(theirs.key)), 'bramble-agent 1.2.3')
  t.equal(checkSignature(theirs.file, theirs.signature, keyOf(theirs.key.split('\n')[1] ?? '')), 'bramble-agent 1.2.3')
})

test('a change of any byte of the file, the signature or its comment is refused', async (t) => {
  const key = keyOf(theirs.key)
  for (const at of theirs.file.keys()) {
    const changed = Buffer.from(theirs.file)
    changed[at] = (changed[at] ?? 0) ^ 1
    t.equal(checkSignature(changed, theirs.signature, key), undefined)
  }
  const [first = ''] = theirs.signature.split('\n')
  for (let at = first.length; at < theirs.signature.length - 1; at++) {
    const other = theirs.signature[at] === 'A' ? 'B' : 'A'
    const changed = `${theirs.signature.slice(0, at)}${other}${theirs.signature.slice(at + 1)}`
    // Base64 has bits that mean nothing before its padding.
    if (bytesOf(changed) === bytesOf(theirs.signature)) continue
    if (checkSignature(theirs.file, changed, key) !== undefined) t.fail(`byte ${at} can be changed`)
  }
})

test('what is signed here has the form of minisign, and another key refuses it', async (t) => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const file = Buffer.from('another')
  const signature = signFile(file, privateKey, 'a comment')
  t.equal(checkSignature(file, signature, keyOf(signatureKeyText(privateKey))), 'a comment')
  t.equal(checkSignature(file, signature, keyOf(theirs.key)), undefined)
  const shape = (text: string) => text.split('\n').map((line) => line.replace(/:.*/, ':').length)
  t.same(shape(signature), shape(theirs.signature))
})

test('keys and signatures that are damaged are refused', async (t) => {
  for (const text of ['', 'x', 'RWQ', theirs.signature, `${theirs.key}more`, 'RW'.padEnd(56, 'A').replace('RW', 'XX')])
    t.equal(readSignatureKey(text), undefined)
  for (const text of ['', '\n\n\n\n', theirs.key, 'x'.repeat(1_000_000), theirs.signature.replace('RU', 'RW')])
    t.equal(checkSignature(theirs.file, text, keyOf(theirs.key)), undefined)
})

function bytesOf(signature: string): string {
  return signature
    .split('\n')
    .map((line, at) => (at % 2 === 1 ? Buffer.from(line, 'base64').toString('hex') : line))
    .join()
}
