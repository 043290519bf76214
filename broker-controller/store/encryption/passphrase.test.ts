import { test } from 'tap'
import { openFiles, sealFiles } from './passphrase.ts'

const files = new Map([
  ['ca.key', Buffer.from('a key')],
  ['ca.crt', Buffer.from('a certificate')],
])

test('private files need the passphrase, certificates do not', async (t) => {
  const sealed = await sealFiles(files, 'correct horse battery')
  t.same(sealed.files.get('ca.crt'), files.get('ca.crt'))
  t.notMatch(Buffer.from(sealed.files.get('ca.key') ?? []).toString('latin1'), 'a key')
  t.same(await openFiles(sealed.files, 'correct horse battery', sealed.parameters), files)
  await t.rejects(openFiles(sealed.files, 'correct horse', sealed.parameters), {
    message: 'The passphrase is not that of the backup',
  })
  const again = await sealFiles(files, 'correct horse battery')
  t.notSame(again.parameters.salt, sealed.parameters.salt)
})

test('a letter with an accent is the same in each of its encodings', async (t) => {
  const sealed = await sealFiles(files, 'caf\u00e9 caf\u00e9 caf\u00e9')
  t.same(await openFiles(sealed.files, 'cafe\u0301 cafe\u0301 cafe\u0301', sealed.parameters), files)
})

test('a file that asks for more work than any backup is refused', async (t) => {
  const { files: sealed, parameters } = await sealFiles(files, 'correct horse battery')
  for (const more of [{ cost: 2 ** 18 }, { blockSize: 64 }, { parallelization: 17 }]) {
    await t.rejects(openFiles(sealed, 'correct horse battery', { ...parameters, ...more }), { message: /more work/ })
  }
  for (const allowed of [
    { cost: 2 ** 17, parallelization: 1 },
    { cost: 2 ** 10, parallelization: 16 },
  ]) {
    await t.rejects(openFiles(sealed, 'correct horse battery', { ...parameters, ...allowed }), {
      message: 'The passphrase is not that of the backup',
    })
  }
})
