/** Devices are the extended resources with our prefix; all others are the business of whoever put them on the Node. */
export function isDevice(resource: string): boolean {
  return resource.startsWith('bramble.dev/')
}
