/** Small manifests, as a user would write them. */

export type PodOptions = {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  /** In place of its name as `app`. */
  readonly labels?: Readonly<Record<string, string>>
  readonly spec?: object
  readonly container?: object
}

/** A pod of one container that sleeps, or runs `command`. */
export function podManifest({
  name,
  image,
  command = ['sleep', '100000'],
  labels,
  spec,
  container,
}: PodOptions): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: labels ?? { app: name } },
    spec: { ...spec, containers: [{ name: 'main', image, imagePullPolicy: 'Never', command, ...container }] },
  })
}
