/** An image whose author attacks the machines that run it: 60 MiB of labels, which Docker repeats in its answers. */
import { createHash } from 'node:crypto'
import { tarOf } from '../../../agent/pods/images/tar.ts'
import { hostArchitecture } from '../../support/registry.ts'

/** Long ones, and many short ones. */
export const hostileLabels = Object.fromEntries([
  ...Array.from({ length: 50 }, (_, i) => [`long.${i}`, 'x'.repeat(1024 * 1024)]),
  ...Array.from({ length: 300_000 }, (_, i) => [`short.${i}`, `value "${i}"`]),
])

/** What a pod of it waits for. */
export const hostileImageRefused = /its configuration is too large \(\d+ KiB, at most 256 KiB\)/

/** As `docker save` writes it. */
export function hostileArchive(name: string, layer: Buffer): Buffer {
  const digest = createHash('sha256').update(layer).digest('hex')
  const config = {
    architecture: hostArchitecture(),
    os: 'linux',
    config: { Cmd: ['sh'], Labels: hostileLabels },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  }
  const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }]
  const file = (path: string, content: Buffer) => ({ path, content, mode: 0o644 })
  return tarOf([
    file('config.json', Buffer.from(JSON.stringify(config))),
    file('layer.tar', layer),
    file('manifest.json', Buffer.from(JSON.stringify(manifest))),
  ])
}
