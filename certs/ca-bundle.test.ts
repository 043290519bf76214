import { test } from 'tap'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { openAuthority } from './authority.ts'
import { caBundleProblem } from './ca-bundle.ts'

test('a bundle has certificates that can be read, or nothing', async (t) => {
  const { certificate } = await openAuthority(testFolder(t), Date.now())
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  for (const usable of [
    undefined,
    '',
    base64('\n'),
    base64(certificate),
    base64(`# ours\n${certificate}${certificate}`),
  ]) {
    t.equal(caBundleProblem(usable), undefined, String(usable))
  }
  const [begin, end] = ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----']
  for (const wrong of ['x', `${begin}\nAAAA\n${end}\n`, `${certificate}${begin}\nAAAA\n${end}\n`]) {
    t.match(caBundleProblem(base64(wrong)), /unable to load root certificates/)
  }
})
