import { execFile } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { dayMs, openAuthority } from './authority.ts'
import { caHash } from './ca-hash.ts'
import { openssl, temporaryFolder } from './testing/openssl.ts'

const run = promisify(execFile)

test('an authority is made once, and openssl takes it for one', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const path = join(folder.path, 'new', 'authority')
  const now = Date.now()
  const first = await openAuthority(path, now)
  t.equal(first.created, true)
  t.equal((await stat(path)).mode & 0o777, 0o700)
  t.equal((await stat(join(path, 'ca.key'))).mode & 0o777, 0o600)
  t.same((await readdir(path)).sort(), ['ca.crt', 'ca.key'], 'nothing else is left in the folder')

  const crt = join(path, 'ca.crt')
  t.match(await openssl('verify', '-x509_strict', '-check_ss_sig', '-CAfile', crt, crt), 'OK')
  const text = await openssl('x509', '-in', crt, '-noout', '-text')
  for (const line of [
    /Version: 3/,
    /ecdsa-with-SHA256/,
    /NIST CURVE: P-256/,
    /X509v3 Basic Constraints: critical\s+CA:TRUE, pathlen:0/,
    /X509v3 Key Usage: critical\s+Digital Signature, Certificate Sign, CRL Sign/,
    /Subject Key Identifier/,
    /Authority Key Identifier/,
  ])
    t.match(text, line)
  const certificate = new X509Certificate(first.certificate)
  t.ok(certificate.ca && certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey))
  t.equal(Date.parse(certificate.validFrom), Math.floor((now - 5 * 60_000) / 1000) * 1000)
  t.equal(Date.parse(certificate.validTo), Math.floor((now + 3650 * dayMs) / 1000) * 1000)

  const again = await openAuthority(path, now + dayMs)
  t.match(again, { created: false, certificate: first.certificate, hash: first.hash, tightened: [] })
})

test('the hash is that of the public key, as openssl computes it', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const { hash, certificate } = await openAuthority(folder.path, Date.now())
  const spki = join(folder.path, 'spki.der')
  await openssl('pkey', '-in', join(folder.path, 'ca.key'), '-pubout', '-outform', 'DER', '-out', spki)
  t.equal(`SHA2-256(${spki})= ${hash.replace('sha256:', '')}\n`, await openssl('dgst', '-sha256', spki))
  t.equal(caHash(certificate), hash)
})

test('programs that start at one moment end with one authority', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const path = join(folder.path, 'authority')
  const module = fileURLToPath(new URL('./authority.js', import.meta.url))
  const code = `const { openAuthority } = await import(process.argv[1])
    while (Date.now() < Number(process.argv[3])) {}
    const { certificate, created } = await openAuthority(process.argv[2], Date.now())
    console.log(JSON.stringify({ certificate, created }))`
  const startMs = String(Date.now() + 400)
  const started = Array.from({ length: 5 }, () =>
    run(process.execPath, ['--input-type=module', '-e', code, module, path, startMs], { timeout: 90_000 }),
  )
  const answers = (await Promise.all(started)).map(({ stdout }) => JSON.parse(stdout))
  const kept = await readFile(join(path, 'ca.crt'), 'utf8')
  for (const answer of answers) t.equal(answer.certificate, kept)
  t.equal(answers.filter((answer) => answer.created).length, 1, 'one of them made it')
  t.same((await readdir(path)).sort(), ['ca.crt', 'ca.key'])
})

test('a start that died between key and certificate is finished by the next', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  await openAuthority(folder.path, Date.now())
  const key = await readFile(join(folder.path, 'ca.key'), 'utf8')
  await rm(join(folder.path, 'ca.crt'))
  const finished = await openAuthority(folder.path, Date.now())
  t.equal(finished.created, true)
  t.equal(await readFile(join(folder.path, 'ca.key'), 'utf8'), key, 'the key stays')
})

test('a key that others could read is made private, and that is logged', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  await openAuthority(folder.path, Date.now())
  await chmod(folder.path, 0o755)
  await chmod(join(folder.path, 'ca.key'), 0o644)
  const { tightened } = await openAuthority(folder.path, Date.now())
  t.same(tightened, [folder.path, join(folder.path, 'ca.key')])
  t.equal((await stat(join(folder.path, 'ca.key'))).mode & 0o777, 0o600)
})

test('an invalid authority is refused with the file named, and nothing is made in its place', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  const at = (name: string) => join(folder.path, name)
  const now = Date.now()
  await openAuthority(at('a'), now)
  await openAuthority(at('b'), now)

  await mkdir(at('keyless'))
  await writeFile(at('keyless/ca.crt'), await readFile(at('a/ca.crt')))
  await t.rejects(openAuthority(at('keyless'), now), /its key .*keyless\/ca.key does not/)
  t.same(await readdir(at('keyless')), ['ca.crt'])

  await writeFile(at('b/ca.crt'), await readFile(at('a/ca.crt')))
  await t.rejects(openAuthority(at('b'), now), /is not that of the certificate/)
  await writeFile(at('b/ca.crt'), 'nothing')
  await t.rejects(openAuthority(at('b'), now), /There is no certificate in .*b\/ca.crt/)
  await writeFile(at('b/ca.key'), '')
  await t.rejects(openAuthority(at('b'), now), /There is no private key in .*b\/ca.key/)
})

test('a clock that cannot be right makes no authority', async (t) => {
  const folder = await temporaryFolder()
  t.teardown(folder.remove)
  await t.rejects(openAuthority(folder.path, 60_000), /clock shows 1970-01-01T00:01:00/)
  t.same(await readdir(folder.path), [])
})
