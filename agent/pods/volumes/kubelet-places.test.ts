import { test } from 'tap'
import { kubeletPlaceOf, seesPods } from './kubelet-places.ts'

test('a volume is where the kubelet would have it, and the path is the one that Velero looks for', async (t) => {
  const nas = { server: 'nas', path: '/a' } as const
  const place = (volume: Partial<Parameters<typeof kubeletPlaceOf>[0]>) =>
    kubeletPlaceOf({ volume: 'pv-1', source: 'share', ...volume })?.join('/')
  t.equal(place({ source: 'local' }), 'kubernetes.io~local-volume/pv-1')
  t.equal(place({ share: { kind: 'nfs', ...nas } }), 'kubernetes.io~nfs/pv-1')
  t.equal(place({ share: { kind: 'smb', ...nas } }), 'kubernetes.io~csi/pv-1/mount')
  t.equal(place({ source: 'csi' }), undefined, 'its driver mounts it there')
  t.equal(place({ source: 'hostPath' }), undefined, 'the kubelet has none')
  t.equal(place({ source: 'local', isBlock: true }), undefined)
})

test('a pod sees the volumes of others by a hostPath of the folder of the kubelet, of its pods, or of one of them', async (t) => {
  const sees = (path: string) => seesPods(path, '/var/lib/kubelet')
  for (const path of ['', '/', '/pods', '/pods/', '//pods/.', '/pods/uid-1/volumes']) {
    t.equal(sees(`/var/lib/kubelet${path}`), true, path)
  }
  for (const path of [
    '/',
    '/var/lib',
    '/var/lib/kubelet/plugins',
    '/var/lib/kubelet/pods-of-old',
    '/var/lib/kubelets',
  ]) {
    t.equal(sees(path), false, path)
  }
})
