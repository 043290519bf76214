/** Devices are the extended resources with the prefix bramble.dev/. Others are only counted by the scheduler. */
export function isDevice(resource: string): boolean {
  return resource.startsWith('bramble.dev/')
}
