target_sources(costate-compiler PRIVATE targets/simt/Places.cpp targets/simt/Simt.cpp)
costate_tests(targets/simt/PlacesTest.cpp)
