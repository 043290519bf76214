import { test } from 'tap'
import { AgeError, ageDecrypted, ageEncrypted } from './age-file.ts'
import { ageIdentities, identityFile, newAgeIdentity } from './age-keys.ts'
import { bech32, fromBech32 } from './bech32.ts'

const chunk = 64 * 1024

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
async function whole(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all)
}
const text = (length: number) => Buffer.from(Array.from({ length }, (_, i) => (i * 7) % 251))

test('Bech32 writes what BIP 173 does, and reads nothing else', async (t) => {
  t.equal(
    bech32('abcdef', fromBech32('abcdef', 'abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw') ?? Buffer.alloc(0)),
    'abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw',
  )
  t.same(fromBech32('a', 'A12UEL5L'), Buffer.alloc(0))
  const good = bech32('age', Buffer.alloc(32, 7))
  t.same(fromBech32('age', good), Buffer.alloc(32, 7))
  t.same(fromBech32('age', good.toUpperCase()), Buffer.alloc(32, 7))
  const wrong = [
    good.slice(0, -1),
    `${good.slice(0, -1)}q`,
    good.replace('age', 'agf'),
    `A${good.slice(1)}`,
    'age1',
    '',
    'a12uel5b',
  ]
  for (const one of wrong) t.equal(fromBech32('age', one), undefined, one)
})

test('a file of every length is read again, in pieces of any size', async (t) => {
  const identity = newAgeIdentity()
  for (const length of [0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk, 3 * chunk + 5]) {
    for (const size of [1_000, chunk, 10 * chunk]) {
      const file = await whole(ageEncrypted(inPieces(text(length), size), identity.recipient))
      const read = await whole(ageDecrypted(inPieces(file, size), [newAgeIdentity(), identity]))
      t.ok(read.equals(text(length)), `${length} in ${size}`)
    }
  }
})

test('a file that was cut, changed, put together or is for another key is refused', async (t) => {
  const identity = newAgeIdentity()
  const file = await whole(ageEncrypted(inPieces(text(2 * chunk + 9), chunk), identity.recipient))
  const rejects = async (bytes: Buffer, message: RegExp, identities = [identity]) => {
    const error = await whole(ageDecrypted(inPieces(bytes, 5_000), identities)).catch((one: unknown) => one)
    t.ok(error instanceof AgeError && message.test(error.message), error instanceof Error ? error.message : 'decrypted')
  }
  await rejects(file, /another key/, [newAgeIdentity()])
  await rejects(file.subarray(0, -1), /damaged, or was cut/)
  // The start of the data is after header and nonce.
  const start = file.indexOf('\n---') + 49 + 16
  await rejects(file.subarray(0, start + chunk + 16), /damaged, or was cut/, [identity])
  await rejects(Buffer.concat([file, file.subarray(-25)]), /damaged/)
  await rejects(Buffer.alloc(0), /ends before its data/)
  await rejects(file.subarray(0, 40), /ends before its data/)
  await rejects(Buffer.from('tar'), /not one of age/)
  await rejects(Buffer.concat([Buffer.from('age-encryption.org/v1\n'), Buffer.alloc(20_000, 65)]), /too long/)
  for (let at = 0; at < file.length; at += at < 300 ? 1 : 20_011) {
    for (const bit of [1, 2]) {
      const changed = Buffer.from(file)
      changed[at] = (changed[at] ?? 0) ^ bit
      await rejects(changed, /./)
    }
  }
})

test('keys are read from files as age-keygen writes them', async (t) => {
  const identity = newAgeIdentity()
  const file = identityFile(identity, '2026-11-29T00:00:00Z')
  t.match(file, /^# created: .*\n# public key: age1[a-z0-9]{58}\nAGE-SECRET-KEY-1[A-Z0-9]{58}\n$/)
  t.same(ageIdentities(`${file}\n${file}`), [identity, identity])
  t.throws(() => ageIdentities(`# key\nAGE-SECRET-KEY-1`), { message: /^line 2 is not a key/ })
  await t.rejects(whole(ageEncrypted(inPieces(text(1), 1), 'age1')), { message: /not a public key/ })
})

test('a file that the program age has written is read', async (t) => {
  const [identity] = ageIdentities('AGE-SECRET-KEY-1UQCMA6FW3SMJTXXP3Y7ELYYX06Z86W9S6A9TMXV4X984RJ7PYF8SDMSDW6')
  const file = Buffer.from(
    'YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBHS0Z2VW51U25UTHd1M2VjR3BUSU9tbXcralpNdkZKbHVHZ2krWnpJSndvCjlEYmovajdrZHlQODB4SGt0WHpOT3VtbDl0V2Y2Y0lHNmdQT1NHQ0Fpa1kKLS0tIDgzM04zblVTcm1RUkpxa0hiaEZZU0xqdUVvemhjdGY4SFIrZjg2WDdMdzgKdRUDzM8RmZRhWNG4ykPOEB1k/uLYUAZkHs0tdVIx+W80Y/erL5Y=',
    'base64',
  )
  t.equal(
    (await whole(ageDecrypted(inPieces(file, 7), identity === undefined ? [] : [identity]))).toString(),
    'hello\n',
  )
})
