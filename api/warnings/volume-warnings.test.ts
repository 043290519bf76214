import { test } from 'tap'
import { volumeWarnings } from './volume-warnings.ts'

const items = (...paths: string[]) => paths.map((path) => ({ key: 'k', path }))

test('files of a volume of which one is a folder of the other, or the same', async (t) => {
  const overlaps = (...paths: string[]) =>
    volumeWarnings([{ name: 'v', configMap: { name: 'm', items: items(...paths) } }])
  t.same(overlaps('a', 'b', 'ab', 'a.b'), [])
  t.same(overlaps('a', 'b', 'a'), ['volume "v" (ConfigMap "m"): overlapping paths: "a" with "a"'])
  t.same(overlaps('a/b', 'a/'), ['volume "v" (ConfigMap "m"): overlapping paths: "a" with "a/b"'])
  t.same(overlaps('a', 'a/b'), ['volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a"'])
  t.equal(overlaps(...Array.from({ length: 1000 }, () => 'a')).length, 20)
})

test('volumes of each kind with files, and projected ones of several sources', async (t) => {
  const twice = items('a', 'a')
  const path = { path: 'a' }
  t.same(
    volumeWarnings([
      { name: 's', secret: { secretName: 'x', items: twice } },
      { name: 'd', downwardAPI: { items: [path, path] } },
      { name: 'all', secret: { secretName: 'x' } },
      {
        name: 'p',
        projected: {
          sources: [
            { configMap: { name: 'm', items: items('a') } },
            { secret: { name: 'x', items: items('a/b') } },
            { downwardAPI: { items: [{ path: 'c' }] } },
            { serviceAccountToken: { path: 'c' } },
            {},
          ],
        },
      },
    ]),
    [
      'volume "s" (Secret "x"): overlapping paths: "a" with "a"',
      'volume "d" (DownwardAPI): overlapping paths: "a" with "a"',
      'volume "p" (Projected) has no sources provided',
      'volume "p" (Projected): overlapping paths: "a/b" (Secret "x") with "a" (ConfigMap "m")',
      'volume "p" (Projected): overlapping paths: "c" (ServiceAccountToken) with "c" (DownwardAPI)',
    ],
  )
})

test('the two files that overlap are found among many that do not', async (t) => {
  const paths = ['a/x', 'a.b', ...Array.from({ length: 150 }, (_, index) => `b${index}`), 'a-b', 'c/d/e', 'a', 'c/d/f']
  const items = paths.map((path) => ({ key: 'k', path }))
  t.same(volumeWarnings([{ name: 'v', configMap: { name: 'c', items } }]), [
    'volume "v" (ConfigMap "c"): overlapping paths: "a" with "a/x"',
  ])
})
