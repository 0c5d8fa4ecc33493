// Compares images between the zones of a group.

/** Returns the name of an image with its tag or digest: zones with equal results request the same image, as each zone can have a registry. */
export function imageOfZone(image: string): string {
  return image.replace(/^.*\//, '');
}
