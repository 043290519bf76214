import { test } from 'tap'
import { nodeVersion, version as ownVersion } from '../../daemon/process/version.ts'
import { type StandbyVersion, standbyVersions, whyLeaderWaits } from './standby-versions.ts'

const standby = (name: string, version?: string): StandbyVersion => ({ server: `https://${name}:6443`, version })
const cases: readonly (readonly [name: string, standbys: readonly StandbyVersion[], why: RegExp | undefined])[] = [
  ['no other controller', [], undefined],
  ['all others run it', [standby('b', '1.5.0'), standby('c', '1.5.0')], undefined],
  [
    'one runs an older version',
    [standby('b', '1.5.0'), standby('c', '1.4.0')],
    /first: https:\/\/c:6443 \(1\.4\.0\)\. With/,
  ],
  ['two do', [standby('b', '1.3.0'), standby('c', '1.4.0')], /b:6443 \(1\.3\.0\), https:\/\/c:6443 \(1\.4\.0\)/],
  ['one does not answer', [standby('b', '1.5.0'), standby('c')], undefined],
  ['one does not answer, and one is older', [standby('b'), standby('c', '1.4.0')], /first: https:\/\/c:6443/],
]
for (const [name, standbys, why] of cases) {
  test(`the leader ${why === undefined ? 'is updated' : 'waits'}: ${name}`, async (t) => {
    const found = whyLeaderWaits('1.5.0', standbys)
    if (why === undefined) t.equal(found, undefined)
    else t.match(found, why)
  })
}

test('the versions of controllers are those that they answer with', async (t) => {
  const answers: { readonly [url: string]: unknown } = {
    'https://b:6443': { gitVersion: nodeVersion },
    'https://c:6443': { gitVersion: 'v1.32.4' },
    'https://d:6443': 'no JSON',
  }
  const client = (url: string) => ({
    async get(path: string) {
      t.equal(path, '/version')
      if (!(url in answers)) throw new Error('connection refused')
      return { status: 200, body: answers[url], dateHeader: undefined }
    },
  })
  t.same(await standbyVersions([...Object.keys(answers), 'https://e:6443'], client), [
    { server: 'https://b:6443', version: ownVersion },
    ...['c', 'd', 'e'].map((name) => ({ server: `https://${name}:6443`, version: undefined })),
  ])
})
