/** Files of one volume that stand in each other's way (warningsForOverlappingVirtualPaths in pkg/api/pod/warnings.go). */
import type { Volume } from '../pod.ts'
import { clipped } from '../problem.ts'
import { withoutEnd } from '../text/without-end.ts'

type PlacedFile = { readonly path: string; readonly source: string }

/** Files of one volume that are compared with each other: more are not looked at. */
const mostCompared = 200
/** Pairs that are named. */
const mostNamed = 20

export function volumeWarnings(volumes: readonly Volume[] = []): readonly string[] {
  return volumes.flatMap((volume) => {
    const { name, configMap, secret, downwardAPI, projected } = volume
    return [
      ...overlaps(name, `ConfigMap "${configMap?.name ?? ''}"`, filesIn(configMap?.items)),
      ...overlaps(name, `Secret "${secret?.secretName ?? ''}"`, filesIn(secret?.items)),
      ...overlaps(name, 'DownwardAPI', filesIn(downwardAPI?.items)),
      ...(projected?.sources ?? [])
        .filter((source) => Object.keys(source).length === 0)
        .map(() => `volume "${name}" (Projected) has no sources provided`),
      ...overlaps(name, 'Projected', (projected?.sources ?? []).flatMap(projectedFiles)),
    ]
  })
}

type Projection = NonNullable<NonNullable<Volume['projected']>['sources']>[number]

function projectedFiles({ configMap, secret, downwardAPI, serviceAccountToken }: Projection): readonly PlacedFile[] {
  if (configMap?.items !== undefined) return filesIn(configMap.items, `ConfigMap "${configMap.name ?? ''}"`)
  if (secret?.items !== undefined) return filesIn(secret.items, `Secret "${secret.name ?? ''}"`)
  if (downwardAPI?.items !== undefined) return filesIn(downwardAPI.items, 'DownwardAPI')
  return serviceAccountToken === undefined ? [] : filesIn([serviceAccountToken], 'ServiceAccountToken')
}

function filesIn(items: readonly { readonly path: string }[] = [], source = ''): readonly PlacedFile[] {
  return items.map(({ path }) => ({ path: withoutEnd(path, '/'), source }))
}

function overlaps(volume: string, what: string, all: readonly PlacedFile[]): readonly string[] {
  const files = overlapping(all.slice(0, mostCompared).filter(({ path }) => path !== ''))
  const pairs: (readonly [PlacedFile, PlacedFile])[] = []
  for (const [index, file] of files.entries()) {
    if (pairs.length >= mostNamed) break
    pairs.push(
      ...files.slice(0, index).flatMap((earlier) => (isShared(file, earlier) ? [[file, earlier] as const] : [])),
    )
  }
  return pairs
    .slice(0, mostNamed)
    .map(([file, earlier]) => `volume "${volume}" (${what}): overlapping paths: ${shown(file)} with ${shown(earlier)}`)
}

/** Those that share a path with another one, in their order. Sorted, a folder comes right before all that is in it. */
function overlapping(files: readonly PlacedFile[]): readonly PlacedFile[] {
  const sorted = files.map((file) => ({ file, text: `${file.path}/` })).sort((a, b) => (a.text < b.text ? -1 : 1))
  const found = new Set<PlacedFile>()
  let top = sorted[0]
  for (const one of sorted.slice(1)) {
    if (top !== undefined && one.text.startsWith(top.text)) found.add(top.file).add(one.file)
    else top = one
  }
  return files.filter((file) => found.has(file))
}

/** They are the same, or one is a folder of the other. */
function isShared({ path: one }: PlacedFile, { path: other }: PlacedFile): boolean {
  return `${one}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${one}/`)
}

function shown({ path, source }: PlacedFile): string {
  return source === '' ? JSON.stringify(clipped(path)) : `${JSON.stringify(clipped(path))} (${source})`
}
